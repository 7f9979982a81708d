/* start.c: the entry point of our own programs on ELF systems, so that linking one needs no crt1.o of the target.
 * glibc: __libc_start_main as in its sysdeps/<arch>/start.S. bionic: __libc_init as in its crtbegin.c. */
#include <stdlib.h>

int main(int argc, char **argv);

#if defined(__x86_64__)
__asm__(".text\n.globl _start\n.type _start,@function\n_start:\nxorl %ebp, %ebp\nmovq %rsp, %rdi\nmovq %rdx, %rsi\n"
        "andq $-16, %rsp\ncall xnn_start\nhlt\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl _start\n.type _start,%function\n_start:\nmov x29, xzr\nmov x30, xzr\nmov x1, x0\nmov x0, sp\n"
        "b xnn_start\n");
#else
__asm__(".text\n.arm\n.globl _start\n.type _start,%function\n_start:\nmov r11, #0\nmov lr, #0\nmov r1, r0\nmov r0, sp\n"
        "b xnn_start\n");
#endif

#if defined(__ANDROID__)
typedef struct { void (**preinit)(void), (**init)(void), (**fini)(void), (**more)(void); } structors;
void __libc_init(void *stack, void (*at_exit)(void), int (*main_)(int, char **, char **), const structors *);

__attribute__((used, noreturn)) void xnn_start(long *stack, void (*at_exit)(void)) {
    static const structors none = {0, 0, 0, 0};
    __libc_init(stack, at_exit, (int (*)(int, char **, char **))main, &none);
    abort();
}
#else
int __libc_start_main(int (*main_)(int, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

__attribute__((used, noreturn)) void xnn_start(long *stack, void (*at_exit)(void)) {
    __libc_start_main(main, (int)stack[0], (char **)(stack + 1), 0, 0, at_exit, stack);
    abort();
}
#endif
