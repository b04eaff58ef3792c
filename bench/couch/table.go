package main

import (
	"fmt"
	"io"
	"strings"
)

// table is one in Markdown.
type table struct {
	columns []string
	rows    [][]string
}

func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = cell(c)
	}
	t.rows = append(t.rows, row)
}

func cell(c any) string {
	switch c := c.(type) {
	case float64:
		switch {
		case c == 0:
			return ""
		case c >= 1000:
			return fmt.Sprintf("%.0f", c)
		case c >= 100:
			return fmt.Sprintf("%.1f", c)
		case c < 1:
			return fmt.Sprintf("%.4f", c)
		}
		return fmt.Sprintf("%.2f", c)
	case int64:
		if c == 0 {
			return ""
		}
	}
	return fmt.Sprint(c)
}

func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(t.columns, " | "), strings.Repeat("---|", len(t.columns)))
	for _, row := range t.rows {
		row = append(row, make([]string, len(t.columns)-len(row))...)
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
	fmt.Fprintln(w)
}

// beside says what a measured number is in percent more than a recorded one.
func beside(measured, recorded float64) string {
	switch {
	case recorded == 0:
		return ""
	case measured == recorded:
		return "exact"
	}
	return fmt.Sprintf("%+.2f %%", 100*(measured/recorded-1))
}
