// Command extraction reads the output of `go test -bench` with -count from its
// standard input and prints a Markdown table: for each benchmark the median, least
// and greatest of the CPU time of one operation, and its allocations.
package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// benchmark holds the repetitions of one benchmark.
type benchmark struct {
	name   string
	times  []float64 // nanoseconds of CPU time
	allocs string
}

func main() {
	var all []*benchmark
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(fields[0], "Benchmark"), "-"+strconv.Itoa(procs(fields[0])))
		i := slices.IndexFunc(all, func(b *benchmark) bool { return b.name == name })
		if i < 0 {
			i = len(all)
			all = append(all, &benchmark{name: name})
		}
		for j := 2; j+1 < len(fields); j += 2 {
			switch fields[j+1] {
			case "cpu-ns/op":
				if v, err := strconv.ParseFloat(fields[j], 64); err == nil {
					all[i].times = append(all[i].times, v)
				}
			case "allocs/op":
				all[i].allocs = fields[j]
			}
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("\n## Extraction, CPU time of one row\n\nThe benchmarks of the package filter: fields of a row / the field compared.\n\n")
	fmt.Println("| benchmark | ns | allocations |\n|---|---|---|")
	for _, b := range all {
		if len(b.times) == 0 {
			continue
		}
		slices.Sort(b.times)
		fmt.Printf("| %s | %.0f (%.0f-%.0f) | %s |\n", b.name, b.times[(len(b.times)-1)/2], b.times[0], b.times[len(b.times)-1], b.allocs)
	}
}

// procs returns the number that go test puts behind a benchmark's name, 0 if there
// is none.
func procs(name string) int {
	n, _ := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	return n
}
