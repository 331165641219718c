package main

import (
	"io/fs"
	"syscall"
)

// owner is the id of the user that a file belongs to.
func owner(status fs.FileInfo) int {
	return int(status.Sys().(*syscall.Stat_t).Uid)
}
