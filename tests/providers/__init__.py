"""Fakes of outside providers that count effects. See README.md.

    import providers
    stripe = providers.start("stripe")              # in this process
    stripe = providers.spawn("stripe", journal=…)   # in a process of its own; the same calls
"""

from .chat import Discord, Slack, Twilio
from .fake import FAULTS, Effect, Fake
from .generic import Generic, GenericKeys
from .hubspot import HubSpot
from .llm import Anthropic, Gemini, OpenAI
from .mail import Postmark, Resend, SendGrid
from .remote import RemoteFake
from .smtp import Smtp
from .stripe import Stripe

PROVIDERS = {fake.name: fake for fake in (Stripe, Resend, Postmark, SendGrid, HubSpot, Slack, Twilio, Discord, OpenAI, Anthropic, Gemini, Generic, GenericKeys, Smtp)}


def start(name, port=0, **options):
    return PROVIDERS[name](**options).start(port)


def spawn(name, port=0, **options):
    return RemoteFake(name, port, **options)
