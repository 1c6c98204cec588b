package main

// #include <stdlib.h>
import "C"

// With C code, the program is linked with the C library, and its threads are the C library's.
var _ = C.abs(1)
