/*
 * once: one intent, its ledger, the workers who may act for it, the network and the destination; every interleaving of them.
 *
 * The ledger here makes the moves of src/ledger/ledger.c; the inlines carry the names of the functions they stand for. A lease ends whenever the
 * checker likes, also under a healthy holder, so nothing that is proved here rests on a clock. Time exists in one place, the window in which
 * a destination remembers a key, and there a clock strikes each third of it (see strike()).
 *
 *   -DMODE=IDEM   the destination deduplicates on our key, inside its window
 *   -DMODE=QUERY  it can be asked afterwards
 *   -DMODE=AMO    it offers nothing; what is ambiguous is held for a person
 *   -DMODE=ALO    it offers nothing; what is ambiguous is tried again, and that is written down
 *
 *   -DFAULTS=n    how many lost replies, crashes, lost or doubled requests, failed connections and refusals there are in a history
 *   -DBATCH       commits are steps of their own: commands gather in a batch, a crash loses it, answers wait for it. Without the flag a command is
 *                 decided, committed and answered in one step, which nobody outside could tell apart: a crash before the commit is a request
 *                 that never came, one after it is a lost reply
 *   -DLIVE        the liveness property instead of a plain search
 *
 * Each mutant is a flag that breaks one rule; see README.md.
 */
#define IDEM 1
#define QUERY 2
#define AMO 3
#define ALO 4

#ifndef MODE
#define MODE IDEM
#endif
#ifndef FAULTS
#define FAULTS 4
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 3
#endif
#define FENCES 4 /* one more than ATTEMPTS: index 0 is no fence */

/* Prints each rare situation once, so that a run in which it never came up is noticed. */
c_decl { static unsigned seen_marks; }
#define MARK(bit, name) c_code { if (!(seen_marks & (1u << bit))) { seen_marks |= 1u << bit; printf("mark: " name "\n"); } }

/* ---- the ledger's row: `m` in the memory of an open batch, `d` on disk ---- */

#define ABSENT 0
#define PENDING 1
#define CLAIMED 2
#define SENT 3
#define CONFIRMED 4
#define REFUSED 5
#define UNKNOWN 6
#define BURIED 7

#define FRESH 1
#define OLD 2

#define AMBIGUOUS_EARLIER 1
#define AMBIGUOUS_NOW 2

typedef row {
    byte state;
    byte fence;     /* also the number of attempts: each claim raises both */
    byte first;     /* since it may first have left: FRESH, OLD past two thirds of the window; 0 when it never left */
    byte ambiguous; /* which attempts may have had an effect: AMBIGUOUS_EARLIER, AMBIGUOUS_NOW */
    bool two_phase;
    byte result;
    byte sents;     /* audit: the fences that were SENT, a bit each */
    bool announced; /* audit: "may repeat" was written */
};
row m;
#ifdef BATCH
row d;
bool open; /* a batch is decided and not yet committed */
#define OPEN_BATCH open = true
#define NO_BATCH (!open)
#else
#define d m
#define OPEN_BATCH skip
#define NO_BATCH true
#endif

#define HELD(r) (r.state == CLAIMED || r.state == SENT)
#define SETTLED(r) (r.state == CONFIRMED || r.state == REFUSED || r.state == UNKNOWN || r.state == BURIED)

/* ---- the world ---- */

byte faults = FAULTS;
byte effects;
byte net[FENCES];    /* copies of each attempt's request under way */
byte late;           /* attempts whose lease began before the last strike, a bit each */
byte key_age[FENCES]; /* since the destination first saw the key: FRESH, OLD, then forgotten: 0 */
byte key_result[FENCES];

#ifdef NEW_KEY
#define KEY(fence) (fence)
#else
#define KEY(fence) 1
#endif

/* ---- the workers ---- */

#define IDLE 0
#define W_CLAIM 1 /* W_: waits for the ledger's answer */
#define HOLD 2    /* has claimed in two phases; must not act */
#define W_SENT 3
#define MAY 4     /* may act */
#define REL 5     /* wants to give it back */
#define W_REL 6
#define CALLED 7  /* the request has left */
#define W_DUNNO 9
#define W_CONF 11
#define NONE_N 12 /* knows: my attempt had no effect */
#define NONE_F 13 /* … and there should be no other */
#define W_NONE_N 14
#define W_NONE_F 15
#define W_EXT 16
#define W_READ 17
#define END 18

byte at[WORKERS];
byte has[WORKERS];   /* the fence it holds, or is about to be told */
byte ans[WORKERS];   /* the destination's answer: 0 none, NO, or the result */
bool told[WORKERS];  /* it has said that it cannot tell */
bool asked2[WORKERS]; /* it claimed in two phases */
byte rep[WORKERS];   /* the ledger's answer … */
#ifdef BATCH
bool kept[WORKERS];  /* … which waits for the commit */
#endif

#define NO 9
#define R_NOTHING 0
#define R_DONE 1
#define R_FENCED 2
#define R_ALREADY 3
#define R_LOST 4

byte top;         /* the highest fence that was handed out */
byte seen_result; /* what the first client who was told of a result was told */

#define BITOF(fence) (1 << (fence))
#define IS_LATE(fence) ((late & BITOF(fence)) != 0)
#define MAY_ACT(w) (at[w] == MAY || (at[w] == W_SENT && (!asked2[w] || rep[w] == R_DONE)) || \
                    (at[w] == W_CLAIM && !asked2[w] && rep[w] == R_DONE) || (at[w] == W_EXT && !asked2[w]))

#if WORKERS == 3
#define ANYONE(p) (p(0) || p(1) || p(2))
#else
#define ANYONE(p) (p(0) || p(1))
#endif
#define NET_EMPTY (net[1] == 0 && net[2] == 0 && net[3] == 0)

/* Lease and longest delay are over for everybody: whoever could still act has acted or never will. */
#define QUARANTINED (!ANYONE(MAY_ACT) && NET_EMPTY)

/* ---- promises ---- */

/* PROMISE: what the world sees. RULE: what the ledger does to keep it; left out with -DHARM_ONLY, so that a mutant is refuted by its harm. */
#define PROMISE(holds, text) \
    if \
    :: holds \
    :: else -> c_code { printf("broken: " text "\n"); }; assert(false) \
    fi
#ifdef HARM_ONLY
#define RULE(holds, text) skip
#else
#define RULE(holds, text) PROMISE(holds, text)
#endif

#define CHECK_WRITER(w) RULE((has[w] == m.fence), "only the current fence writes")

/* ---- ledger.c ---- */

inline had_no_effect(all_attempts)
{
    m.ambiguous = (all_attempts -> 0 : m.ambiguous & AMBIGUOUS_EARLIER);
    m.first = (m.ambiguous == 0 -> 0 : m.first)
}

inline intent_move(to) /* also the audit row: it is in the same transaction */
{
    PROMISE((m.state != CONFIRMED || to == BURIED), "confirmed stays confirmed");
    PROMISE((m.state != REFUSED || to == BURIED), "refused stays refused");
    RULE((m.state != UNKNOWN || to == CONFIRMED || effects == 0), "unknown is left only by one who knows");
    if
    :: to == CONFIRMED -> PROMISE((effects > 0), "confirmed has an effect")
    :: to == REFUSED -> PROMISE((effects == 0), "refused has no effect"); MARK(0, "refused")
    :: to == UNKNOWN -> MARK(1, "unknown")
    :: to == SENT -> m.sents = m.sents | BITOF(m.fence)
    :: else
    fi;
    /* What the new state never asks for is cleared, so that like states look alike. */
    if
    :: to != CLAIMED && to != SENT -> m.two_phase = false
    :: else
    fi;
    if
    :: to == CONFIRMED || to == REFUSED || to == BURIED -> had_no_effect(true)
    :: else
    fi;
    m.state = to
}

inline set_sent()
{
    if
    :: MODE == IDEM && m.first == 0 -> m.first = FRESH
    :: else
    fi
}

#ifdef NO_WINDOW
#define RETRY_IS_DEDUPLICATED (MODE == IDEM)
#else
#define RETRY_IS_DEDUPLICATED (MODE == IDEM && m.first == FRESH)
#endif

#ifdef RETRY_AMBIGUOUS
#define ON_UNKNOWN_RETRY true
#else
#define ON_UNKNOWN_RETRY (MODE == ALO)
#endif

inline move_ambiguous()
{
    m.ambiguous = m.ambiguous | AMBIGUOUS_NOW;
    if
    :: RETRY_IS_DEDUPLICATED -> intent_move(PENDING)
    :: !RETRY_IS_DEDUPLICATED && ON_UNKNOWN_RETRY -> m.announced = true; intent_move(PENDING)
    :: else -> intent_move(UNKNOWN)
    fi
}

inline lapse()
{
    if
    :: m.state == CLAIMED -> intent_move(PENDING)
    :: m.state == SENT -> move_ambiguous()
    fi
}

/* The answer waits for the commit. */
inline reply(w, what)
{
    rep[w] = what;
#if defined(BATCH) && !defined(ACK_EARLY)
    kept[w] = true;
#endif
    OPEN_BATCH
}

inline give_claim(w)
{
    m.fence++;
    m.ambiguous = (m.ambiguous != 0 -> AMBIGUOUS_EARLIER : 0);
    m.two_phase = asked2[w];
    has[w] = m.fence;
    RULE((m.fence > top), "the fence grows");
#ifndef BATCH
    top = m.fence;
#endif
    late = late & ~BITOF(m.fence);
#ifdef NO_SENT
    intent_move(CLAIMED);
#else
    if
    :: asked2[w] -> intent_move(CLAIMED)
    :: else -> set_sent(); intent_move(SENT)
    fi;
#endif
    reply(w, R_DONE)
}

#define PAST_HORIZON (m.ambiguous != 0 && MODE == IDEM && !RETRY_IS_DEDUPLICATED)

inline claim_pending(w)
{
    if
    :: !PAST_HORIZON && m.fence < ATTEMPTS -> give_claim(w)
    :: !(!PAST_HORIZON && m.fence < ATTEMPTS) && m.ambiguous != 0 -> intent_move(UNKNOWN); reply(w, R_FENCED)
    :: else -> intent_move(REFUSED); reply(w, R_FENCED)
    fi
}

inline say_sent(w)
{
    if
    :: !HELD(m) -> reply(w, R_FENCED)
    :: m.state == SENT && m.two_phase -> reply(w, R_DONE)
    :: else ->
        CHECK_WRITER(w);
        m.two_phase = true;
        set_sent();
        intent_move(SENT);
        reply(w, R_DONE)
    fi
}

inline say_confirm(w)
{
    if
    :: m.state == CONFIRMED -> reply(w, (m.result == ans[w] -> R_DONE : R_FENCED))
    :: m.state == REFUSED || m.state == BURIED || m.state == ABSENT -> reply(w, R_FENCED)
    :: else ->
        CHECK_WRITER(w);
        if
        :: m.state == UNKNOWN -> MARK(2, "late confirm in unknown")
        :: m.state == PENDING -> MARK(3, "late confirm in pending")
        :: else
        fi;
        set_sent();
        m.result = ans[w];
        intent_move(CONFIRMED);
        reply(w, R_DONE)
    fi
}

/* A holder speaks for its own attempt: its "no effect" says nothing of an earlier one. */
#ifdef FORGET_EARLIER
#define OF_ALL_ATTEMPTS (m.state == UNKNOWN)
#define EARLIER false
#else
#define OF_ALL_ATTEMPTS false
#define EARLIER (m.state == UNKNOWN && (m.ambiguous & AMBIGUOUS_EARLIER) != 0)
#endif

inline fail_without_effect(final)
{
    had_no_effect(OF_ALL_ATTEMPTS);
    if
    :: !final -> intent_move(PENDING)
    :: final && m.ambiguous != 0 -> intent_move(UNKNOWN)
    :: else -> intent_move(REFUSED)
    fi
}

inline say_fail_none(w, final)
{
    if
    :: m.state == CONFIRMED || m.state == BURIED || m.state == ABSENT -> reply(w, R_FENCED)
    :: EARLIER -> MARK(4, "no effect, but an earlier attempt is unknown"); reply(w, R_DONE)
    :: m.state == REFUSED || (m.state == PENDING && !final) -> reply(w, R_DONE)
    :: else ->
        CHECK_WRITER(w);
        fail_without_effect(final);
        reply(w, R_DONE)
    fi
}

inline say_fail_unknown(w)
{
    if
    :: m.state == CONFIRMED || m.state == BURIED || m.state == ABSENT -> reply(w, R_FENCED)
    :: m.state == REFUSED || m.state == UNKNOWN || (m.state == PENDING && m.ambiguous != 0) -> reply(w, R_DONE)
    :: else ->
        CHECK_WRITER(w);
        move_ambiguous();
        reply(w, R_DONE)
    fi
}

/* A repetition may not be drawn out past the horizon by heartbeats. */
#ifdef EXTEND_BLIND
#define MAY_EXTEND HELD(m)
#else
#define MAY_EXTEND (HELD(m) && !PAST_HORIZON)
#endif

inline say_extend(w)
{
    reply(w, (MAY_EXTEND -> R_DONE : R_FENCED))
}

inline say_release(w)
{
    if
    :: m.state == PENDING -> reply(w, R_DONE)
    :: m.state != PENDING && !HELD(m) -> reply(w, R_FENCED)
    :: m.state == SENT && m.two_phase -> reply(w, R_ALREADY)
    :: else ->
        CHECK_WRITER(w);
        had_no_effect(false);
        intent_move(PENDING);
        reply(w, R_DONE)
    fi
}

/* holder_says(): the fence first. */
#ifdef NO_FENCE
#define IS_FENCED(w) false
#else
#define IS_FENCED(w) (m.state == ABSENT || has[w] != m.fence)
#endif
#ifdef LATE_CONFIRM_ANY
#define CONFIRM_IS_FENCED(w) (IS_FENCED(w) && m.state != PENDING)
#else
#define CONFIRM_IS_FENCED(w) IS_FENCED(w)
#endif

/* ---- the processes ---- */

inline forget_all(w)
{
    m.sents = m.sents & ~BITOF(has[w]); /* its SENT can matter to nobody any more; forgetting it saves states */
    d.sents = d.sents & ~BITOF(has[w]);
    late = (net[has[w]] == 0 -> late & ~BITOF(has[w]) : late);
    has[w] = 0;
    ans[w] = 0;
    rep[w] = R_NOTHING;
#ifdef BATCH
    kept[w] = false;
#endif
    told[w] = false;
    asked2[w] = false
}

inline go(w, where)
{
    rep[w] = R_NOTHING;
    at[w] = where
}

inline give_up(w)
{
    forget_all(w);
    at[w] = IDLE
}

inline finish(w)
{
    forget_all(w);
    at[w] = END
}

inline learn(result_)
{
    PROMISE((seen_result == 0 || seen_result == result_), "everyone is told the same result");
    seen_result = result_
}

/* The answer is there, or is lost on the way. */
inline receive(w)
{
    if
    :: true
    :: faults > 0 && rep[w] != R_LOST -> faults--; rep[w] = R_LOST
    fi
}

inline hear_claim(w)
{
    receive(w);
    if
    :: rep[w] == R_DONE ->
        top = (has[w] > top -> has[w] : top);
#ifdef NO_SENT
        go(w, MAY)
#else
        go(w, (asked2[w] -> HOLD : MAY))
#endif
    :: else -> give_up(w)
    fi
}

inline hear_replay(w)
{
    receive(w);
    if
    :: rep[w] == R_DONE -> learn(has[w]); MARK(5, "replay"); has[w] = 0; finish(w)
    :: else -> has[w] = 0; give_up(w)
    fi
}

inline hear_sent(w)
{
    receive(w);
    if
    :: rep[w] == R_DONE -> asked2[w] = true; go(w, MAY)
    :: rep[w] == R_LOST -> go(w, (asked2[w] -> HOLD : MAY)) /* it must not act on a `sent` of which it has not heard */
    :: else -> give_up(w)
    fi
}

inline hear_extend(w)
{
    receive(w);
    if
    :: rep[w] == R_DONE -> late = late & ~BITOF(has[w]); go(w, (asked2[w] -> HOLD : MAY))
    :: else -> give_up(w)
    fi
}

inline hear_release(w)
{
    receive(w);
    if
    :: rep[w] == R_LOST -> go(w, REL)
    :: rep[w] == R_ALREADY -> go(w, NONE_N)
    :: else -> give_up(w)
    fi
}

inline hear_unknown(w)
{
    receive(w);
    if
    :: rep[w] == R_LOST -> go(w, CALLED)
    :: else -> told[w] = true; go(w, CALLED) /* the destination may still answer */
    fi
}

inline hear_confirm(w)
{
    receive(w);
    if
    :: rep[w] == R_LOST -> go(w, CALLED)
    :: rep[w] == R_DONE -> learn(ans[w]); MARK(6, "confirmed"); finish(w)
    :: else -> give_up(w)
    fi
}

inline hear_none(w)
{
    receive(w);
    if
    :: rep[w] == R_LOST -> go(w, at[w] - 2)
    :: else -> give_up(w)
    fi
}

#ifdef BATCH
#define HEAR(w, hear) skip
#define ANSWERED(w) (rep[w] != R_NOTHING && !kept[w])
#else
#define HEAR(w, hear) hear(w)
#endif

inline ask_sent(w)
{
    at[w] = W_SENT;
    if
    :: IS_FENCED(w) -> reply(w, R_FENCED)
    :: else -> say_sent(w)
    fi;
    HEAR(w, hear_sent)
}

/* All workers are alike: worker 0 stands for the one that is first. */
#define MAY_CLAIM(w) (m.state == PENDING || (m.state == ABSENT && (w == 0 || top > 0)))

proctype worker(byte w)
{
end:
    do
    :: atomic { at[w] == IDLE && MAY_CLAIM(w) ->
        at[w] = W_CLAIM;
        if
        :: asked2[w] = true
        :: asked2[w] = false
        fi;
        if
        :: m.state == ABSENT -> give_claim(w)
        :: else -> claim_pending(w)
        fi;
        HEAR(w, hear_claim) }
    :: atomic { at[w] == IDLE && m.state == CONFIRMED ->
        at[w] = W_READ;
        has[w] = m.result;
        reply(w, R_DONE);
        HEAR(w, hear_replay) }
    :: atomic { at[w] == HOLD -> ask_sent(w) }
    :: d_step { at[w] == HOLD -> at[w] = REL }
    :: d_step { at[w] == HOLD -> at[w] = NONE_N }
    :: d_step { at[w] == HOLD -> at[w] = NONE_F }
    :: d_step { at[w] == MAY -> RULE(((d.sents & BITOF(has[w])) != 0), "no call without a durable sent of its fence"); net[has[w]]++; at[w] = CALLED }
    :: d_step { at[w] == MAY && faults > 0 -> faults--; at[w] = NONE_N } /* no connection */
    :: d_step { at[w] == MAY && faults > 0 -> faults--; at[w] = NONE_F }
    :: d_step { at[w] == MAY && !asked2[w] -> at[w] = REL } /* it may give back what it has not begun … */
    :: atomic { at[w] == MAY && !asked2[w] -> ask_sent(w) } /* … or say `sent` after all */
    :: atomic { MODE == IDEM && (at[w] == HOLD || (at[w] == MAY && !asked2[w])) && IS_LATE(has[w]) ->
        at[w] = W_EXT;
        if
        :: IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_extend(w)
        fi;
        HEAR(w, hear_extend) }
    :: atomic { at[w] == REL ->
        at[w] = W_REL;
        if
        :: IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_release(w)
        fi;
        HEAR(w, hear_release) }
    :: d_step { at[w] == CALLED && ans[w] == NO -> at[w] = NONE_N; ans[w] = 0 }
    :: d_step { at[w] == CALLED && ans[w] == NO -> at[w] = NONE_F; ans[w] = 0 }
    :: d_step { at[w] == CALLED && ans[w] == 0 -> give_up(w) }
    :: atomic { at[w] == CALLED && ans[w] == 0 && !told[w] ->
        at[w] = W_DUNNO;
        if
        :: IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_fail_unknown(w)
        fi;
        HEAR(w, hear_unknown) }
    :: atomic { at[w] == CALLED && ans[w] != NO && ans[w] != 0 ->
        at[w] = W_CONF;
        if
        :: CONFIRM_IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_confirm(w)
        fi;
        HEAR(w, hear_confirm) }
    :: atomic { at[w] == NONE_N || at[w] == NONE_F ->
        at[w] = at[w] + 2;
        if
        :: IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_fail_none(w, (at[w] == W_NONE_F))
        fi;
        HEAR(w, hear_none) }
    :: d_step { at[w] != IDLE && at[w] != END && faults > 0 -> faults--; give_up(w) } /* it dies; what has left has left */
#ifdef BATCH
    :: atomic { at[w] == W_CLAIM && ANSWERED(w) -> hear_claim(w) }
    :: atomic { at[w] == W_READ && ANSWERED(w) -> hear_replay(w) }
    :: atomic { at[w] == W_SENT && ANSWERED(w) -> hear_sent(w) }
    :: atomic { at[w] == W_EXT && ANSWERED(w) -> hear_extend(w) }
    :: atomic { at[w] == W_REL && ANSWERED(w) -> hear_release(w) }
    :: atomic { at[w] == W_DUNNO && ANSWERED(w) -> hear_unknown(w) }
    :: atomic { at[w] == W_CONF && ANSWERED(w) -> hear_confirm(w) }
    :: atomic { (at[w] == W_NONE_N || at[w] == W_NONE_F) && ANSWERED(w) -> hear_none(w) }
#endif
    od
}

#ifdef BATCH
#define COPY(to, from) \
    to.state = from.state; to.fence = from.fence; to.first = from.first; to.ambiguous = from.ambiguous; \
    to.two_phase = from.two_phase; to.result = from.result; to.sents = from.sents; to.announced = from.announced

inline lose_replies()
{
    i = 0;
    do
    :: i < WORKERS ->
        if
        :: kept[i] ->
            kept[i] = false;
            rep[i] = R_LOST;
            has[i] = (at[i] == W_CLAIM || at[i] == W_READ -> 0 : has[i]) /* it never heard of it */
        :: else
        fi;
        i++
    :: else -> break
    od
}

inline send_replies()
{
    i = 0;
    do
    :: i < WORKERS -> kept[i] = false; i++
    :: else -> break
    od
}

proctype writer()
{
    byte i;
end:
    do
    :: d_step { open -> COPY(d, m); send_replies(); i = 0; open = false }
    :: d_step { open && faults > 0 -> faults--; COPY(m, d); lose_replies(); i = 0; open = false; MARK(7, "crash before the commit") }
    :: d_step { open && faults > 0 -> faults--; COPY(d, m); lose_replies(); i = 0; open = false; MARK(8, "crash after the commit") }
    od
}

#endif

/* Only this and the workers need to be treated fairly: a lease ends, and somebody asks again. */
proctype time()
{
end:
    do
#ifndef NO_LAPSE
    :: d_step { HELD(m) -> lapse(); OPEN_BATCH }
#endif
    :: d_step { (m.state == CONFIRMED || m.state == REFUSED) && NO_BATCH -> intent_move(BURIED); OPEN_BATCH; MARK(9, "expired") }
#ifdef PURGE_ACTIVE
    :: d_step { m.state != ABSENT && m.state != BURIED && NO_BATCH ->
        m.state = ABSENT; m.fence = 0; m.ambiguous = 0; m.first = 0; m.two_phase = false; m.result = 0; OPEN_BATCH }
#endif
    od
}

#define ACTS_LATE(w) (MAY_ACT(w) && IS_LATE(has[w]))
#define PACKET_LATE(fence_) (net[fence_] > 0 && IS_LATE(fence_))
#define LEASE_LATE(r) (HELD(r) && IS_LATE(r.fence))
/* A lease, and the longest that a request can be under way after it, are shorter than a third of the window. */
#define MAY_STRIKE (!ANYONE(ACTS_LATE) && !PACKET_LATE(1) && !PACKET_LATE(2) && !PACKET_LATE(3) && !LEASE_LATE(m) && !LEASE_LATE(d))

#define OUT(fence_) (net[fence_] > 0 || (HELD(m) && m.fence == fence_) || (HELD(d) && d.fence == fence_) || \
                     (MAY_ACT(0) && has[0] == fence_) || (MAY_ACT(1) && has[1] == fence_) || THIRD_OUT(fence_))
#if WORKERS == 3
#define THIRD_OUT(fence_) (MAY_ACT(2) && has[2] == fence_)
#else
#define THIRD_OUT(fence_) false
#endif
#define LATE_BIT(fence_) (OUT(fence_) -> BITOF(fence_) : 0)
#define OLDER(first_) (first_ == FRESH -> OLD : first_)

inline grow_older(key)
{
    key_age[key] = (key_age[key] == FRESH -> OLD : 0)
}

/* A third of the window has passed. What first left before it is past the horizon now; a key is forgotten at the second strike after it was seen. */
inline strike()
{
    late = LATE_BIT(1) | LATE_BIT(2) | LATE_BIT(3);
    m.first = OLDER(m.first);
#ifdef BATCH
    d.first = OLDER(d.first);
#endif
    grow_older(1);
    grow_older(2);
    grow_older(3)
}

#define REMEMBERED(key) (MODE == IDEM && key_age[key] != 0)

inline answer_worker(fence_, what)
{
    j = 0;
    do
    :: j < WORKERS ->
        if
        :: has[j] == fence_ && (at[j] == CALLED || at[j] == W_DUNNO) -> ans[j] = what
        :: else
        fi;
        j++
    :: else -> break
    od;
    j = 0
}

inline act(fence_)
{
    PROMISE((MODE == ALO || effects == 0), "one effect at most");
    PROMISE((MODE != ALO || effects == 0 || d.announced), "a second effect was announced");
    PROMISE((d.state != REFUSED), "no effect after refused");
    if
    :: effects == 0 -> effects = 1
    :: else -> effects = 2; MARK(10, "announced second effect")
    fi;
    key_age[KEY(fence_)] = (MODE == IDEM -> FRESH : 0);
    key_result[KEY(fence_)] = fence_;
    answer_worker(fence_, fence_)
}

inline arrive(fence_)
{
    net[fence_]--;
    if
    :: REMEMBERED(KEY(fence_)) -> MARK(11, "deduplicated"); answer_worker(fence_, key_result[KEY(fence_)])
    :: else -> act(fence_)
    fi
}

#if defined(LOOK_EARLY) || defined(HUMAN_FAST)
#define MAY_LOOK true
#elif defined(LOOK_NET)
#define MAY_LOOK NET_EMPTY
#else
#define MAY_LOOK QUARANTINED
#endif

/* The way to the destination, the destination, and whoever looks at it to settle what is unknown: a look-up where it can be asked, a person
 * elsewhere. A refusal is of the request, so each copy of it is refused. Only a destination that deduplicates is given doubled requests:
 * with the others no ledger could help. */
proctype outside()
{
    byte i, j;
end:
    do
    :: d_step { net[1] > 0 -> arrive(1) }
    :: d_step { net[2] > 0 -> arrive(2) }
    :: d_step { net[3] > 0 -> arrive(3) }
    :: d_step { MODE == IDEM && m.state != ABSENT && MAY_STRIKE -> strike() }
    :: atomic { faults > 0 && !NET_EMPTY -> faults--;
        if
        :: net[1] > 0 -> i = 1
        :: net[2] > 0 -> i = 2
        :: net[3] > 0 -> i = 3
        fi;
        if
        :: net[i]--
        :: MODE == IDEM && net[i] == 1 -> net[i]++
        :: !REMEMBERED(KEY(i)) && key_result[KEY(i)] != i -> net[i] = 0; answer_worker(i, NO)
        fi;
        i = 0 }
    :: d_step { m.state == UNKNOWN && NO_BATCH && MAY_LOOK && effects > 0 ->
        m.result = key_result[KEY(m.fence)];
        intent_move(CONFIRMED);
        OPEN_BATCH;
        MARK(12, "looked: it happened") }
    :: d_step { m.state == UNKNOWN && NO_BATCH && MAY_LOOK && effects == 0 ->
        had_no_effect(true);
        intent_move(PENDING);
        OPEN_BATCH;
        MARK(13, "looked: it did not happen") }
    od
}

init
{
    atomic {
        run worker(0);
        run worker(1);
#if WORKERS == 3
        run worker(2);
#endif
#ifdef BATCH
        run writer();
#endif
        run time();
        run outside()
    }
}

#ifdef LIVE
ltl settles { [] ((d.state != ABSENT) -> <> SETTLED(d)) }
#endif
