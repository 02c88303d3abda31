#include "link/link_filter.h"

#include "link/messages.h"

#include <string.h>

#define UDP_HEAD   8 /* a UDP socket's filter sees its datagrams from there on */
#define LEAST      (UDP_HEAD + LINK_DATA_MIN_BYTES)
#define LEAST_INIT (UDP_HEAD + LINK_INIT_BYTES)
#define TYPE_AT    UDP_HEAD
#define MARK_AT    (UDP_HEAD + 7) /* of DATA: the index is little-endian, at 4 */

void link_filter_make(struct sock_filter program[LINK_FILTER_LENGTH], uint8_t mark)
{
    /* Jumps count instructions from the next one on: where true, where false. Numbers are read big-endian. */
    const struct sock_filter made[LINK_FILTER_LENGTH] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, LEAST, 0, 7),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, TYPE_AT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)LINK_DATA << 24, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)LINK_INIT << 24, 0, 4),
        BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, LEAST_INIT, 3, 2),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, MARK_AT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mark, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    memcpy(program, made, sizeof made);
}
