/*
 * once: one intent, its ledger, the workers who may act for it, the network and the destination; every interleaving of them.
 *
 * The ledger here makes the moves of src/ledger/ledger.c; the inlines carry the names of the functions they stand for. A lease ends whenever the
 * checker likes, also under a healthy holder, so nothing that is proved here rests on a clock. Time exists in one place, the window in which
 * a destination remembers a key, and there it is counted in phases (see `phase`).
 *
 *   -DMODE=IDEM   the destination deduplicates on our key, inside its window
 *   -DMODE=QUERY  it can be asked afterwards
 *   -DMODE=AMO    it offers nothing; what is ambiguous is held for a person
 *   -DMODE=ALO    it offers nothing; what is ambiguous is tried again, and that is written down
 *
 *   -DFAULTS=n    how many lost replies, crashes, lost or doubled requests, failed connections and refusals there are in a history
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
#define PHASES 3

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

typedef row {
    byte state;
    byte fence;     /* also the number of attempts: each claim raises both */
    byte first;     /* 1 + the phase in which it may first have left; 0 for never */
    byte ambiguous; /* the fence of the first attempt of which nobody can tell; 0 for none */
    bool two_phase;
    byte result;
    byte sents;     /* audit: the fences that were SENT, a bit each */
    bool announced; /* audit: "may repeat" was written */
};
row m, d;
bool open; /* a batch is decided and not yet committed */

#define HELD(r) (r.state == CLAIMED || r.state == SENT)
#define SETTLED(r) (r.state == CONFIRMED || r.state == REFUSED || r.state == UNKNOWN || r.state == BURIED)

/* ---- the world ---- */

byte faults = FAULTS;
byte effects;
byte phase;          /* thirds of the destination's window and more: two phases pass before it forgets */
byte net[FENCES];    /* copies of each attempt's request under way */
byte stamp[FENCES];  /* the phase in which the attempt's lease last began */
byte key_at[FENCES]; /* 1 + the phase in which the destination first saw the key; 0 for never */
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
#define DUNNO 8   /* wants to say: I cannot tell */
#define W_DUNNO 9
#define GOT 10    /* has the destination's result */
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
bool kept[WORKERS];  /* … which waits for the commit */

#define NO 9
#define R_NOTHING 0
#define R_DONE 1
#define R_FENCED 2
#define R_ALREADY 3
#define R_LOST 4

byte given;    /* fences that were handed out, a bit each */
byte seen_result; /* what the first client who was told of a result was told */

#define BITOF(fence) (1 << (fence))
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

/* ---- properties, by name in the output ---- */

#define ONE_EFFECT_AT_MOST (MODE == ALO || effects == 0)
#define SECOND_EFFECT_WAS_ANNOUNCED (MODE != ALO || effects == 0 || d.announced)
#define NO_EFFECT_AFTER_REFUSED (d.state != REFUSED)
#define CONFIRMED_HAS_AN_EFFECT (effects > 0)
#define REFUSED_HAS_NO_EFFECT (effects == 0)
#define UNKNOWN_IS_LEFT_ON_TRUE_GROUND(to) (to == CONFIRMED || effects == 0)
#define ONLY_THE_CURRENT_FENCE_WRITES(fence_) (fence_ == m.fence)
#define FENCE_IS_NEW(fence_) ((given & BITOF(fence_)) == 0)
#define SENT_IS_DURABLE(fence_) ((d.sents & BITOF(fence_)) != 0)
#define SAME_RESULT(result_) (seen_result == 0 || seen_result == result_)

/* A mutant that breaks a rule by definition is to be refuted by the harm it does, so the check of the rule itself is left out for it. */
#if defined(NO_SENT) || defined(ACK_EARLY)
#define CHECK_SENT(fence_) skip
#else
#define CHECK_SENT(fence_) assert(SENT_IS_DURABLE(fence_))
#endif
#if defined(NO_SENT) || defined(ACK_EARLY) || defined(PURGE_ACTIVE)
#define CHECK_FENCE(fence_) skip
#else
#define CHECK_FENCE(fence_) assert(FENCE_IS_NEW(fence_))
#endif
#ifdef NO_FENCE
#define CHECK_WRITER(fence_) skip
#else
#define CHECK_WRITER(fence_) assert(ONLY_THE_CURRENT_FENCE_WRITES(fence_))
#endif

/* ---- ledger.c ---- */

inline intent_move(to) /* also the audit row: it is in the same transaction */
{
    assert(m.state != CONFIRMED || to == BURIED);
    assert(m.state != REFUSED || to == BURIED);
    if
    :: m.state == UNKNOWN -> assert(UNKNOWN_IS_LEFT_ON_TRUE_GROUND(to))
    :: else
    fi;
    if
    :: to == CONFIRMED -> assert(CONFIRMED_HAS_AN_EFFECT)
    :: to == REFUSED -> assert(REFUSED_HAS_NO_EFFECT); MARK(0, "refused")
    :: to == UNKNOWN -> MARK(1, "unknown")
    :: to == SENT -> m.sents = m.sents | BITOF(m.fence)
    :: else
    fi;
    m.state = to
}

inline set_sent()
{
    if
    :: m.first == 0 -> m.first = phase + 1
    :: else
    fi
}

inline forget_sent()
{
    m.first = 0;
    m.ambiguous = 0
}

#ifdef NO_WINDOW
#define RETRY_IS_DEDUPLICATED (MODE == IDEM)
#else
#define RETRY_IS_DEDUPLICATED (MODE == IDEM && m.first != 0 && phase + 1 == m.first)
#endif

#ifdef RETRY_AMBIGUOUS
#define ON_UNKNOWN_RETRY true
#else
#define ON_UNKNOWN_RETRY (MODE == ALO)
#endif

inline move_ambiguous()
{
    if
    :: m.ambiguous == 0 -> m.ambiguous = m.fence
    :: else
    fi;
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
#ifndef ACK_EARLY
    kept[w] = true;
#endif
    open = true
}

inline give_claim(w)
{
    m.fence++;
    m.two_phase = asked2[w];
    has[w] = m.fence;
    stamp[m.fence] = phase;
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
        CHECK_WRITER(has[w]);
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
        CHECK_WRITER(has[w]);
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

/* A holder speaks for its own attempt. When an earlier one is ambiguous too, its "no effect" says nothing of that one. */
#ifdef FORGET_EARLIER
#define SPEAKS_FOR_ALL true
#else
#define SPEAKS_FOR_ALL (m.ambiguous == m.fence)
#endif

inline fail_without_effect(final)
{
    if
    :: m.ambiguous == 0 || (m.state == UNKNOWN && SPEAKS_FOR_ALL) -> forget_sent()
    :: else
    fi;
    if
    :: m.state == UNKNOWN && m.ambiguous != 0 -> MARK(4, "no effect, but an earlier attempt is unknown")
    :: !(m.state == UNKNOWN && m.ambiguous != 0) && !final -> intent_move(PENDING)
    :: !(m.state == UNKNOWN && m.ambiguous != 0) && final && m.ambiguous != 0 -> intent_move(UNKNOWN)
    :: else -> intent_move(REFUSED)
    fi
}

inline say_fail_none(w, final)
{
    if
    :: m.state == CONFIRMED || m.state == BURIED || m.state == ABSENT -> reply(w, R_FENCED)
    :: m.state == REFUSED || (m.state == PENDING && !final) -> reply(w, R_DONE)
    :: else ->
        CHECK_WRITER(has[w]);
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
        CHECK_WRITER(has[w]);
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
        CHECK_WRITER(has[w]);
        if
        :: m.ambiguous == 0 -> forget_sent()
        :: else
        fi;
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
    has[w] = 0;
    ans[w] = 0;
    rep[w] = R_NOTHING;
    kept[w] = false;
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
    assert(SAME_RESULT(result_));
    seen_result = result_
}

/* The answer is there, or is lost on the way. */
#define ANSWERED(w) (rep[w] != R_NOTHING && !kept[w])
inline receive(w)
{
    if
    :: true
    :: faults > 0 && rep[w] != R_LOST -> faults--; rep[w] = R_LOST
    fi
}

proctype worker(byte w)
{
end:
    do
    :: atomic { at[w] == IDLE && (m.state == ABSENT || m.state == PENDING) ->
        if
        :: asked2[w] = true
        :: asked2[w] = false
        fi;
        if
        :: m.state == ABSENT -> give_claim(w)
        :: else -> claim_pending(w)
        fi;
        at[w] = W_CLAIM }
    :: atomic { at[w] == W_CLAIM && ANSWERED(w) -> receive(w);
        if
        :: rep[w] == R_DONE ->
            CHECK_FENCE(has[w]);
            given = given | BITOF(has[w]);
#ifdef NO_SENT
            go(w, MAY)
#else
            if
            :: asked2[w] -> go(w, HOLD)
            :: else -> go(w, MAY)
            fi
#endif
        :: else -> give_up(w)
        fi }
    :: atomic { at[w] == IDLE && m.state == CONFIRMED -> /* a replay */
        has[w] = m.result;
        reply(w, R_DONE);
        at[w] = W_READ }
    :: atomic { at[w] == W_READ && ANSWERED(w) -> receive(w);
        if
        :: rep[w] == R_DONE -> learn(has[w]); MARK(5, "replay"); finish(w)
        :: else -> give_up(w)
        fi }
    :: atomic { at[w] == HOLD ->
        if
        :: at[w] = W_SENT;
            if
            :: IS_FENCED(w) -> reply(w, R_FENCED)
            :: else -> say_sent(w)
            fi
        :: at[w] = REL
        :: at[w] = NONE_N
        :: at[w] = NONE_F
        fi }
    :: atomic { at[w] == W_SENT && ANSWERED(w) -> receive(w);
        if
        :: rep[w] == R_DONE -> asked2[w] = true; go(w, MAY)
        :: rep[w] == R_LOST -> go(w, (asked2[w] -> HOLD : MAY))
        :: else -> give_up(w)
        fi }
    :: atomic { at[w] == MAY -> CHECK_SENT(has[w]); net[has[w]]++; at[w] = CALLED }
    :: atomic { at[w] == MAY && faults > 0 -> faults--;
        if
        :: at[w] = NONE_N
        :: at[w] = NONE_F
        fi }
    :: atomic { at[w] == MAY && !asked2[w] -> /* it may give back what it has not begun, or say `sent` after all */
        if
        :: at[w] = REL
        :: at[w] = W_SENT;
            if
            :: IS_FENCED(w) -> reply(w, R_FENCED)
            :: else -> say_sent(w)
            fi
        fi }
    :: atomic { MODE == IDEM && (at[w] == HOLD || (at[w] == MAY && !asked2[w])) && m.ambiguous != 0 && stamp[has[w]] != phase ->
        at[w] = W_EXT;
        if
        :: IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_extend(w)
        fi }
    :: atomic { at[w] == W_EXT && ANSWERED(w) -> receive(w);
        if
        :: rep[w] == R_DONE -> stamp[has[w]] = phase; go(w, (asked2[w] -> HOLD : MAY))
        :: else -> give_up(w)
        fi }
    :: atomic { at[w] == REL -> at[w] = W_REL;
        if
        :: IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_release(w)
        fi }
    :: atomic { at[w] == W_REL && ANSWERED(w) -> receive(w);
        if
        :: rep[w] == R_LOST -> go(w, REL)
        :: rep[w] == R_ALREADY -> go(w, NONE_N)
        :: else -> give_up(w)
        fi }
    :: atomic { at[w] == CALLED && ans[w] == NO ->
        if
        :: at[w] = NONE_N
        :: at[w] = NONE_F
        fi }
    :: d_step { at[w] == CALLED && ans[w] != NO && ans[w] != 0 -> at[w] = GOT }
    :: d_step { at[w] == CALLED && ans[w] == 0 && !told[w] -> at[w] = DUNNO }
    :: d_step { at[w] == CALLED && ans[w] == 0 -> give_up(w) }
    :: atomic { at[w] == DUNNO -> at[w] = W_DUNNO;
        if
        :: IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_fail_unknown(w)
        fi }
    :: atomic { at[w] == W_DUNNO && ANSWERED(w) -> receive(w);
        if
        :: rep[w] == R_LOST -> go(w, DUNNO)
        :: else -> told[w] = true; go(w, CALLED) /* the destination may still answer */
        fi }
    :: atomic { at[w] == GOT -> at[w] = W_CONF;
        if
        :: CONFIRM_IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_confirm(w)
        fi }
    :: atomic { at[w] == W_CONF && ANSWERED(w) -> receive(w);
        if
        :: rep[w] == R_LOST -> go(w, GOT)
        :: rep[w] == R_DONE -> learn(ans[w]); MARK(6, "confirmed"); finish(w)
        :: else -> give_up(w)
        fi }
    :: atomic { at[w] == NONE_N || at[w] == NONE_F ->
        at[w] = at[w] + 2;
        if
        :: IS_FENCED(w) -> reply(w, R_FENCED)
        :: else -> say_fail_none(w, (at[w] == W_NONE_F))
        fi }
    :: atomic { (at[w] == W_NONE_N || at[w] == W_NONE_F) && ANSWERED(w) -> receive(w);
        if
        :: rep[w] == R_LOST -> go(w, at[w] - 2)
        :: else -> give_up(w)
        fi }
    :: d_step { at[w] != IDLE && at[w] != END && faults > 0 -> faults--; give_up(w) } /* it dies; what has left has left */
    od
}

#define COPY(to, from) \
    to.state = from.state; to.fence = from.fence; to.first = from.first; to.ambiguous = from.ambiguous; \
    to.two_phase = from.two_phase; to.result = from.result; to.sents = from.sents; to.announced = from.announced

inline lose_replies()
{
    i = 0;
    do
    :: i < WORKERS ->
        if
        :: kept[i] -> kept[i] = false; rep[i] = R_LOST
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

#define LATE(w) (MAY_ACT(w) && stamp[has[w]] < phase)
#define PACKET_LATE(fence_) (net[fence_] > 0 && stamp[fence_] < phase)
#define LEASE_LATE(r) (HELD(r) && stamp[r.fence] < phase)
/* A lease, and the longest a request can be under way after it, are shorter than a phase. */
#define PHASE_MAY_END (!ANYONE(LATE) && !PACKET_LATE(1) && !PACKET_LATE(2) && !PACKET_LATE(3) && !LEASE_LATE(m) && !LEASE_LATE(d))

proctype time()
{
end:
    do
#ifndef NO_LAPSE
    :: d_step { HELD(m) -> lapse(); open = true }
#endif
    :: d_step { (m.state == CONFIRMED || m.state == REFUSED) && !open -> intent_move(BURIED); open = true; MARK(9, "expired") }
#ifdef PURGE_ACTIVE
    :: d_step { m.state != ABSENT && m.state != BURIED && !open ->
        m.state = ABSENT; m.fence = 0; m.ambiguous = 0; m.first = 0; m.two_phase = false; m.result = 0; open = true }
#endif
    :: d_step { MODE == IDEM && m.state != ABSENT && phase < PHASES && PHASE_MAY_END -> phase++ }
    od
}

#define REMEMBERED(key) (MODE == IDEM && key_at[key] != 0 && phase + 1 < key_at[key] + 2)

inline answer_worker(fence_, what)
{
    j = 0;
    do
    :: j < WORKERS ->
        if
        :: has[j] == fence_ && (at[j] == CALLED || at[j] == DUNNO || at[j] == W_DUNNO) -> ans[j] = what
        :: else
        fi;
        j++
    :: else -> break
    od;
    j = 0
}

inline act(fence_)
{
    assert(ONE_EFFECT_AT_MOST);
    assert(SECOND_EFFECT_WAS_ANNOUNCED);
    assert(NO_EFFECT_AFTER_REFUSED);
    if
    :: effects == 0 -> effects = 1
    :: else -> effects = 2; MARK(10, "announced second effect")
    fi;
    key_at[KEY(fence_)] = phase + 1;
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

/* The destination and the way to it. A refusal is of the request, so each copy of it is refused. Only a destination that deduplicates is given
 * doubled requests: against the others no ledger could help. */
proctype destination()
{
    byte i, j;
end:
    do
    :: d_step { net[1] > 0 -> arrive(1) }
    :: d_step { net[2] > 0 -> arrive(2) }
    :: d_step { net[3] > 0 -> arrive(3) }
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
    od
}

/* Whoever looks at the destination and settles what is unknown: a look-up where it can be asked, a person elsewhere. */
#if defined(LOOK_EARLY) || defined(HUMAN_FAST)
#define MAY_LOOK true
#elif defined(LOOK_NET)
#define MAY_LOOK NET_EMPTY
#else
#define MAY_LOOK QUARANTINED
#endif

proctype looker()
{
end:
    do
    :: d_step { m.state == UNKNOWN && !open && MAY_LOOK && effects > 0 ->
        m.result = key_result[KEY(m.fence)];
        intent_move(CONFIRMED);
        open = true;
        MARK(12, "looked: it happened") }
    :: d_step { m.state == UNKNOWN && !open && MAY_LOOK && effects == 0 ->
        forget_sent();
        intent_move(PENDING);
        open = true;
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
        run writer();
        run time();
        run destination();
        run looker()
    }
}

#ifdef LIVE
ltl settles { [] ((d.state != ABSENT) -> <> SETTLED(d)) }
#endif
