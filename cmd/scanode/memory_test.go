package main

import (
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

// TestMachineMemory: the least of the machine's memory and the limits of all
// groups above. The files are as Linux writes them.
func TestMachineMemory(t *testing.T) {
	const meminfo = "MemTotal:       16393408 kB\nMemFree:         1000000 kB\n"
	const machine = 16393408 << 10
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int64
	}{
		{"machine", map[string]string{}, machine},
		{"version 2", map[string]string{"/proc/self/cgroup": "0::/system.slice/db.service\n",
			"/sys/fs/cgroup/system.slice/db.service/memory.max": "2147483648\n"}, 2 << 30},
		{"version 2, no limit", map[string]string{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/memory.max": "max\n"}, machine},
		{"version 2, limit above", map[string]string{"/proc/self/cgroup": "0::/a/b\n",
			"/sys/fs/cgroup/a/b/memory.max": "max\n", "/sys/fs/cgroup/a/memory.max": "1073741824\n"}, 1 << 30},
		{"version 2, container", map[string]string{"/proc/self/cgroup": "0::/docker/1234\n", "/sys/fs/cgroup/memory.max": "536870912\n"}, 512 << 20},
		{"version 1", map[string]string{"/proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/1\n",
			"/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "1073741824\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes":          "9223372036854771712\n"}, 1 << 30},
		{"rubbish", map[string]string{"/proc/self/cgroup": "x\n::\n0::../../..\n\n", "/sys/fs/cgroup/memory.max": "-7\n"}, machine},
		{"nothing", map[string]string{"/proc/meminfo": "MemTotal: 99999999999999999999 kB\n"}, 1 << 30},
	} {
		if _, ok := c.files["/proc/meminfo"]; !ok {
			c.files["/proc/meminfo"] = meminfo
		}
		got := machineMemory(func(name string) ([]byte, error) {
			text, ok := c.files[name]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return []byte(text), nil
		})
		if got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	if n := machineMemory(os.ReadFile); n < 64<<20 || n == math.MaxInt64 {
		t.Errorf("this machine has %d bytes", n)
	}
}

func TestMemoryFlags(t *testing.T) {
	for _, c := range []struct {
		f    memoryFlags
		want string // in the error
	}{
		{memoryFlags{0, 0, 25}, ""}, {memoryFlags{128, 128, 25}, ""}, {memoryFlags{1 << 20, 0, 1}, ""}, {memoryFlags{0, 0, 100}, ""},
		{memoryFlags{127, 0, 25}, "--memory-mib 127"}, {memoryFlags{-1, 0, 25}, "--memory-mib -1"}, {memoryFlags{1 << 40, 0, 25}, "--memory-mib"},
		{memoryFlags{256, 257, 25}, "--cache-mib 257"}, {memoryFlags{256, -1, 25}, "--cache-mib -1"},
		{memoryFlags{0, 0, 0}, "--memory-percent 0"}, {memoryFlags{128, 0, 101}, "--memory-percent 101"},
	} {
		f := c.f
		n, err := f.plan()
		if c.want == "" && (err != nil || n != f.memoryMiB<<20 || n < minMemoryMiB<<20) {
			t.Errorf("%+v: %d, %v", c.f, n, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
}

// TestMemoryPercent: four times the share is four times the memory.
func TestMemoryPercent(t *testing.T) {
	small, large := memoryFlags{memoryPercent: 25}, memoryFlags{memoryPercent: 100}
	if _, err := small.plan(); err != nil {
		t.Fatal(err)
	}
	if _, err := large.plan(); err != nil {
		t.Fatal(err)
	}
	if d := large.memoryMiB - 4*small.memoryMiB; small.memoryMiB > minMemoryMiB && (d < -8 || d > 8) {
		t.Errorf("%d MiB and %d MiB", small.memoryMiB, large.memoryMiB)
	}
}

// TestLimitHeap: the runtime's limit follows the flag, and GOMEMLIMIT wins.
func TestLimitHeap(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	t.Setenv("GOMEMLIMIT", "")
	limitHeap(1 << 30)
	if n := debug.SetMemoryLimit(-1); n != 1<<30-outsideHeap {
		t.Errorf("the limit is %d", n)
	}
	t.Setenv("GOMEMLIMIT", "2GiB")
	limitHeap(1 << 31)
	if n := debug.SetMemoryLimit(-1); n != 1<<30-outsideHeap {
		t.Errorf("the limit became %d", n)
	}
}
