import { randomUUID } from 'node:crypto';
import { NodeConnectionTypes, NodeOperationError } from 'n8n-workflow';
import type { IDataObject, IExecuteFunctions, INodeExecutionData, INodeType, INodeTypeDescription } from 'n8n-workflow';
import { post, sentence } from '../semel';

/** Asks semel whether each item is the first of its kind. Whoever is first acts and then says so with Once: Done. */
export class Once implements INodeType {
    description: INodeTypeDescription = {
        displayName: 'Once',
        name: 'once',
        icon: 'file:semel.svg',
        group: ['transform'],
        version: 1,
        subtitle: '={{ $parameter["key"] }}',
        description: 'Lets an item through only the first time; a duplicate gets the result of the first',
        defaults: { name: 'Once' },
        inputs: [NodeConnectionTypes.Main],
        outputs: [NodeConnectionTypes.Main, NodeConnectionTypes.Main],
        outputNames: ['First time', 'Already done'],
        credentials: [{ name: 'semelApi', required: true }],
        properties: [
            { displayName: 'Workflow', name: 'workflow', type: 'string', default: '={{ $workflow.name }}', required: true, description: 'Keys are unique within it; its rules are in the policy' },
            { displayName: 'Key', name: 'key', type: 'string', default: '', required: true, placeholder: 'lead_{{ $json.lead_id }}:intro',
              description: 'Names the thing, from fields of the event. Never the execution ID, never the time of the call' },
            { displayName: 'Done at Once', name: 'confirm', type: 'boolean', default: false,
              description: 'Whether it counts as done already now, before the work: it then happens at most once, and no Once: Done node is needed' },
            { displayName: 'Input', name: 'input', type: 'json', default: '', description: 'What the key stands for; the same key with another input is an error' },
            { displayName: 'Wait (Seconds)', name: 'wait', type: 'number', default: 20, typeOptions: { minValue: 0, maxValue: 300 }, description: 'How long to wait while another execution works on it' },
            { displayName: 'Lease (Seconds)', name: 'lease', type: 'number', default: 300, typeOptions: { minValue: 1, maxValue: 86400 }, description: 'How long the work may take; after that nobody can tell whether it happened' },
        ],
    };

    async execute(this: IExecuteFunctions): Promise<INodeExecutionData[][]> {
        const outputs: INodeExecutionData[][] = [[], []];
        for (const [i, item] of this.getInputData().entries()) {
            try {
                const { first, semel } = await claim(this, i);
                outputs[first ? 0 : 1].push({ ...item, json: { ...item.json, semel }, pairedItem: { item: i } });
            } catch (error) {
                if (!this.continueOnFail()) throw error;
                outputs[1].push({ json: { ...item.json, semel: { error: (error as Error).message } }, error: error as NodeOperationError, pairedItem: { item: i } });
            }
        }
        return outputs;
    }
}

function inputOf(context: IExecuteFunctions, i: number): unknown {
    const given = context.getNodeParameter('input', i, '');
    return given === '' || given === undefined ? undefined : typeof given === 'string' ? JSON.parse(given) : given;
}

async function claim(context: IExecuteFunctions, i: number): Promise<{ first: boolean; semel: IDataObject }> {
    const waitMs = Number(context.getNodeParameter('wait', i)) * 1000;
    const body = {
        workflow: context.getNodeParameter('workflow', i), key: context.getNodeParameter('key', i), input: inputOf(context, i),
        lease_ms: Number(context.getNodeParameter('lease', i)) * 1000, wait_ms: waitMs, run: String(context.getExecutionId() ?? ''),
        two_phase: true, nonce: randomUUID(),
    };
    if (!body.run) delete (body as IDataObject).run;
    const answer = await post(context, '/v1/claims', body as IDataObject, waitMs);
    if (answer.status === 200) return { first: false, semel: { ...answer.body } };
    if (answer.status !== 201) throw new NodeOperationError(context.getNode(), sentence(answer), { itemIndex: i });
    const { intent, fence } = answer.body;
    const at = context.getNodeParameter('confirm', i) ? 'confirm' : 'sent';
    const said = await post(context, `/v1/claims/${intent}/${at}`, { fence, ...(at === 'confirm' ? { result: null } : {}) });
    if (said.status !== 200) throw new NodeOperationError(context.getNode(), sentence(said), { itemIndex: i });
    return { first: true, semel: { ...answer.body } };
}
