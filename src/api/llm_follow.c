#include "api/llm.h"

#define PIECES_MAX 50000 /* as many as are kept of an answer: act/act_own.h */

static struct llm_call *find_leader(const struct llm *llm, const struct hash *hash)
{
    for (struct llm_call *one = llm->under_way; one != NULL; one = one->next)
        if (one->forward.begun && !one->so_far.failed && !one->pieces.failed && memcmp(one->hash.at, hash->at, HASH_SIZE) == 0)
            return one;
    return NULL;
}

/* What the leader's client has got, in the same pieces. */
static void catch_up(struct http_request *request, const struct llm_call *leader)
{
    struct bytes rest = buf_bytes(&leader->so_far);
    for (size_t at = 0; at + sizeof(uint32_t) <= leader->pieces.len; at += sizeof(uint32_t)) {
        uint32_t len;
        memcpy(&len, leader->pieces.at + at, sizeof len);
        http_reply_piece(request, (struct bytes){rest.at, len});
        rest = bytes_from(rest, len);
    }
}

bool llm_follow(struct llm *llm, struct llm_call *own)
{
    struct llm_call *leader = find_leader(llm, &own->hash);
    if (leader == NULL)
        return false;
    forward_follow(&own->forward, &leader->forward);
    catch_up(own->forward.call->request, leader);
    own->next_follower = leader->followers;
    leader->followers = own;
    return true;
}

void llm_follow_piece(struct forward *forward, struct bytes piece)
{
    struct llm_call *leader = (struct llm_call *)forward;
    uint32_t len = (uint32_t)piece.len;
    if (leader->so_far.size_max == 0) {
        buf_init(&leader->so_far, (size_t)forward->destination->response_max);
        buf_init(&leader->pieces, PIECES_MAX * sizeof len);
    }
    buf_add(&leader->so_far, piece);
    buf_add(&leader->pieces, (struct bytes){(const char *)&len, sizeof len});
    for (struct llm_call *one = leader->followers; one != NULL; one = one->next_follower)
        http_reply_piece(one->forward.call->request, piece);
}

/* A follower whose stream did not come whole must notice: its connection is broken off, and it asks again. */
void llm_follow_end(struct llm_call *leader)
{
    const struct memo_answer *tokens = &leader->forward.attended.tokens;
    bool whole = leader->forward.whole && tokens->whole;
    for (struct llm_call *one = leader->followers, *next; one != NULL; one = next) {
        struct call *call = one->forward.call;
        struct buf out = call->out;
        next = one->next_follower;
        one->forward.replayed = whole;
        one->forward.notes = (struct reply_notes){.memo = true, .input = tokens->input, .output = tokens->output};
        forward_release(&one->forward);
        http_reply_end(call->request, whole);
        buf_release(&out);
    }
    leader->followers = NULL;
    buf_release(&leader->so_far);
    buf_release(&leader->pieces);
}
