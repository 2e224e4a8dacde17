//go:build !unix

package main

import "log"

func main() { log.Fatal("processes end in other ways here") }
