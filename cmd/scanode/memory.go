package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"scanode/storage/lsm"
)

// memoryFlags say how much memory the program takes.
type memoryFlags struct{ memoryMiB, cacheMiB, memoryPercent int64 }

// Bounds of the flags, and the share of the machine that the program takes if
// nothing else is said: the BEAM beside it wants most of the rest.
const (
	minMemoryMiB, maxMemoryMiB = 128, 16 << 20
	defaultPercent             = 25
)

// register adds --memory-mib, --memory-percent and --cache-mib.
func (f *memoryFlags) register(fs *pflag.FlagSet) {
	fs.Int64Var(&f.memoryMiB, "memory-mib", 0,
		"MiB of memory that the program takes, for all stores together, at least 128 (default --memory-percent)")
	fs.Int64Var(&f.memoryPercent, "memory-percent", defaultPercent, "the same as a share of the memory of the machine or of its control group")
	fs.Int64Var(&f.cacheMiB, "cache-mib", 0, "MiB of them for table blocks and write buffers (default three eighths)")
}

// plan checks the flags, fills in the defaults, and returns what the program
// takes in bytes.
func (f *memoryFlags) plan() (memory int64, err error) {
	if f.memoryPercent < 1 || f.memoryPercent > 100 {
		return 0, fmt.Errorf("--memory-percent %d: not within 1 and 100", f.memoryPercent)
	}
	if f.memoryMiB == 0 {
		share := machineMemory(os.ReadFile) / 100 * f.memoryPercent >> 20
		f.memoryMiB = min(max(share, minMemoryMiB), maxMemoryMiB)
	}
	if f.memoryMiB < minMemoryMiB || f.memoryMiB > maxMemoryMiB {
		return 0, fmt.Errorf("--memory-mib %d: not within %d and %d", f.memoryMiB, minMemoryMiB, maxMemoryMiB)
	}
	if f.cacheMiB < 0 || f.cacheMiB > f.memoryMiB {
		return 0, fmt.Errorf("--cache-mib %d: not within 1 and %d, the memory of the program", f.cacheMiB, f.memoryMiB)
	}
	return f.memoryMiB << 20, nil
}

// outsideHeap is memory of the process that Go's runtime does not count: the
// program's own pages above all.
const outsideHeap = 24 << 20

// limitHeap makes Go's runtime collect more often before the process takes more
// than memory bytes. GOMEMLIMIT, where it is set, stays in force.
func limitHeap(memory int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory - outsideHeap)
	}
}

// engineConfig is what the flags mean for the engine.
func (f *memoryFlags) engineConfig() lsm.Config {
	return lsm.Config{MemoryBytes: f.memoryMiB << 20, CacheBytes: f.cacheMiB << 20, MaxOpenFiles: tableFiles()}
}

// tableFiles is how many table files are kept open: half of the descriptors this
// process may have, within bounds. Go's runtime has raised the soft limit to the
// hard one. The other half is for links and for the ten or so that each open
// store has.
func tableFiles() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0 // the engine's default
	}
	return int(min(max(limit.Cur/2, 64), 16<<10))
}

// machineMemory is the memory in bytes that this process can have at most: the
// machine's, or the limit of a control group it is in, of version 2 or 1. read
// reads a file. Where nothing is known it is 1 GiB.
func machineMemory(read func(string) ([]byte, error)) int64 {
	memory := int64(math.MaxInt64)
	least := func(n int64, ok bool) {
		if ok && n > 0 {
			memory = min(memory, n)
		}
	}
	info, _ := read("/proc/meminfo")
	least(totalMemory(info))
	groups, _ := read("/proc/self/cgroup")
	for line := range bytes.Lines(groups) {
		// number:controllers:path, without controllers in version 2
		fields := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		if len(fields) != 3 {
			continue
		}
		root, name := "/sys/fs/cgroup", "memory.max"
		if fields[1] != "" {
			if !contains(fields[1], "memory") {
				continue
			}
			root, name = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		}
		// A group has the limits of those above it, too. Inside a container the
		// path may be the host's and lead nowhere; its root then holds the limit.
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			b, err := read(path.Join(root, dir, name))
			if err == nil {
				n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
				least(n, err == nil) // "max" is no number
			}
			if dir == "/" {
				break
			}
		}
	}
	if memory == math.MaxInt64 {
		return 1 << 30
	}
	return memory
}

func contains(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// totalMemory reads the line MemTotal of /proc/meminfo.
func totalMemory(info []byte) (n int64, ok bool) {
	for line := range bytes.Lines(info) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err == nil && n < math.MaxInt64>>10
		}
	}
	return 0, false
}
