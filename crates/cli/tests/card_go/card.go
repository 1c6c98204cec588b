// A program that uses a card by system calls of Go's runtime: in four goroutines, each with words
// of its own. With the words "start" and a path it starts that program, with "alone" behind them
// without any variable of its environment.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"unsafe"
)

func call(number, a, b, c, d, e, f uintptr) uintptr {
	result, _, errno := syscall.Syscall6(number, a, b, c, d, e, f)
	if errno != 0 {
		fmt.Println("call", number, "ends with", errno)
		os.Exit(3)
	}
	return result
}

// The requests of the driver's ioctl.h, as far as they are used.
type allocateTlb struct {
	size, reserved uint64
	id, reserved0  uint32
	uc, wc, last   uint64
}
type configureTlb struct {
	id, reserved                     uint32
	addr                             uint64
	xEnd, yEnd, xStart, yStart       uint16
	noc, mcast, ordering, linked, vc uint8
	reserved0                        [3]uint8
	reserved1                        [2]uint32
	out                              uint64
}

var garbage [4][]byte

func use() {
	path := []byte("/dev/tenstorrent/0\x00")
	const here = ^uintptr(99) // AT_FDCWD
	fd := call(syscall.SYS_OPENAT, here, uintptr(unsafe.Pointer(&path[0])), syscall.O_RDWR, 0, 0, 0)
	take := allocateTlb{size: 2 << 20}
	call(syscall.SYS_IOCTL, fd, 0xFA0B, uintptr(unsafe.Pointer(&take)), 0, 0, 0)
	aim := configureTlb{id: take.id, xEnd: 1, yEnd: 2}
	call(syscall.SYS_IOCTL, fd, 0xFA0D, uintptr(unsafe.Pointer(&aim)), 0, 0, 0)
	const rights = syscall.PROT_READ | syscall.PROT_WRITE
	at := call(syscall.SYS_MMAP, 0, 2<<20, rights, syscall.MAP_SHARED, fd, uintptr(take.wc))
	lost := make(chan uint32)
	for worker := uint32(0); worker < 4; worker++ {
		go func(worker uint32) {
			word := (*uint32)(unsafe.Pointer(at + 0x10000 + uintptr(worker)*4))
			wrong := uint32(0)
			for i := uint32(0); i < 500; i++ {
				*word = i<<8 | worker
				if *word != i<<8|worker {
					wrong++
				}
				// Work for the collector, which stops threads by signals.
				garbage[worker] = make([]byte, 4096)
			}
			lost <- wrong
		}(worker)
	}
	for worker := 0; worker < 4; worker++ {
		if wrong := <-lost; wrong != 0 {
			fmt.Println(wrong, "words are lost")
			os.Exit(4)
		}
	}
	fmt.Println("all words are back")
}

func broken() (said interface{}) {
	defer func() { said = recover() }()
	var nothing *int
	*nothing = 1
	return nil
}

func main() {
	if len(os.Args) > 2 {
		child := exec.Command(os.Args[2])
		child.Stderr = os.Stderr
		if len(os.Args) > 3 {
			child.Env = []string{"A=B"}
		}
		out, err := child.Output()
		fmt.Printf("%schild: %v\n", out, err)
	} else {
		use()
	}
	fmt.Println(broken())
}
