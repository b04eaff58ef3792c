package main

import (
	"embed"
	"strconv"
	"strings"
)

// What couch_btree wrote and how fast, recorded on its own code with OTP 25: a table with
// tabs a file, whose second line has the names of the columns.
//
//go:embed recorded/*.tsv
var recordings embed.FS

// record is a line of such a table by the names of its columns.
type record map[string]string

// recorded returns the table of that name.
func recorded(name string) []record {
	data, err := recordings.ReadFile("recorded/" + name + ".tsv")
	if err != nil {
		panic(err) // it is part of the program
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	columns := strings.Split(lines[1], "\t")
	var all []record
	for _, line := range lines[2:] {
		r := record{}
		for i, field := range strings.Split(line, "\t") {
			r[columns[i]] = field
		}
		all = append(all, r)
	}
	return all
}

// find returns the first of records whose columns have these values, or nil: name, value,
// name, value.
func find(records []record, pairs ...string) record {
search:
	for _, r := range records {
		for i := 0; i < len(pairs); i += 2 {
			if r[pairs[i]] != pairs[i+1] {
				continue search
			}
		}
		return r
	}
	return nil
}

// number returns a column that is a number. Without a record or a column it is 0.
func (r record) number(name string) float64 {
	v, _ := strconv.ParseFloat(r[name], 64)
	return v
}
