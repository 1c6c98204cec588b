#define _GNU_SOURCE
// Children that have their parent's memory until they execute a program (vfork), made by
// instructions of the program's own, as Go's runtime does.
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); exit(1); } } while (0)

static inline __attribute__((always_inline)) long instruction(long number, long a, long b, long c, long d) {
    register long fourth __asm__("r10") = d, fifth __asm__("r8") = 0;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth)
        : "rcx", "r11", "memory");
    return result;
}

static sigjmp_buf jump;
static void on_segv(int signal) { (void)signal; siglongjmp(jump, 1); }

void borrows(volatile uint8_t *at, char *program, char **environment) {
    char *volatile list[] = { program, NULL };
    struct { void *handler; unsigned long flags; void *restorer; uint64_t mask; } old, initial = { SIG_DFL };
    uint64_t all = ~UINT64_C(0), none = 0;
    CHECK(signal(SIGSEGV, on_segv) == SIG_DFL);
    for (int way = 0; way < 2; way++) {
        CHECK(instruction(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8) == 0);
        long child = way ? instruction(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0) : instruction(SYS_vfork, 0, 0, 0, 0);
        if (child == 0) {
            // What it does to its handlers and to its end is not its parent's.
            long done = instruction(SYS_rt_sigaction, SIGSEGV, (long)&initial, (long)&old, 8);
            done |= instruction(SYS_rt_sigaction, SIGSYS, (long)&initial, 0, 8);
            if (old.handler != (void *)on_segv || done != 0) instruction(SYS_exit_group, 98, 0, 0, 0);
            done = instruction(SYS_execve, (long)"/nowhere/a", (long)list, (long)environment, 0);
            if (done == -2) instruction(SYS_execve, (long)program, (long)list, (long)environment, 0);
            instruction(SYS_exit_group, 99, 0, 0, 0);
        }
        CHECK(instruction(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, 8) == 0);
        int ended;
        CHECK(child > 0 && waitpid(child, &ended, 0) == child && WIFEXITED(ended));
        if (WEXITSTATUS(ended) != 7) { printf("way %d: the child ends with %d\n", way, WEXITSTATUS(ended)); exit(1); }
        CHECK(instruction(SYS_rt_sigaction, SIGSEGV, 0, (long)&old, 8) == 0 && old.handler == (void *)on_segv);
        if (sigsetjmp(jump, 1) == 0) { *(volatile int *)8 = 1; CHECK(!"no trap"); }
        *at = 5 + way;
        CHECK(*at == 5 + way);
    }
}
