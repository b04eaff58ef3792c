// Command curve draws latency against rows returned: a panel for each encoding and
// one for the difference.
//
//	curve FILE < POINTS
//
// A point is a line: encoding (ttb or msgpack), series, rows, and the median, least
// and greatest latency in milliseconds, between tabs. The ending of FILE, .svg or
// .png, says in which format.
package main

import (
	"bufio"
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// point is the latency of one number of rows.
type point struct {
	rows             float64
	median, min, max float64 // milliseconds
}

// curve is one series in one encoding.
type curve struct {
	encoding, series string
	points           []point
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: curve FILE < POINTS")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	curves, err := read(os.Stdin)
	if err != nil {
		return err
	}
	panels := []*plot.Plot{panel("ttb"), panel("msgpack"), panel("msgpack − ttb")}
	panels[0].Y.Label.Text = "latency, ms"
	logarithmic(panels[0])
	logarithmic(panels[1])
	panels[2].Y.Label.Text = "difference, ms"
	series := names(curves)
	for _, c := range curves {
		at := 0
		if c.encoding == "msgpack" {
			at = 1
		}
		if err := add(panels[at], c, index(series, c.series), at == 0); err != nil {
			return err
		}
	}
	for i, name := range series {
		d, ok := difference(curves, name)
		if !ok {
			continue
		}
		if err := add(panels[2], d, i, false); err != nil {
			return err
		}
	}
	sameRange(panels[0], panels[1])
	return save(path, panels)
}

func read(from io.Reader) ([]curve, error) {
	var curves []curve
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		if len(f) != 6 {
			return nil, fmt.Errorf("not a point: %q", lines.Text())
		}
		var v [4]float64
		for i := range v {
			var err error
			if v[i], err = strconv.ParseFloat(f[2+i], 64); err != nil {
				return nil, err
			}
		}
		i := 0
		for i < len(curves) && (curves[i].encoding != f[0] || curves[i].series != f[1]) {
			i++
		}
		if i == len(curves) {
			curves = append(curves, curve{encoding: f[0], series: f[1]})
		}
		curves[i].points = append(curves[i].points, point{v[0], v[1], v[2], v[3]})
	}
	return curves, lines.Err()
}

func names(curves []curve) []string {
	var all []string
	for _, c := range curves {
		if index(all, c.series) < 0 {
			all = append(all, c.series)
		}
	}
	return all
}

func index(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}

// difference is msgpack less ttb of one series, medians only.
func difference(curves []curve, series string) (curve, bool) {
	d := curve{series: series}
	of := map[string][]point{}
	for _, c := range curves {
		if c.series == series {
			of[c.encoding] = c.points
		}
	}
	for _, m := range of["msgpack"] {
		for _, t := range of["ttb"] {
			if t.rows == m.rows {
				v := m.median - t.median
				d.points = append(d.points, point{m.rows, v, v, v})
			}
		}
	}
	return d, len(d.points) > 0
}

func panel(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text = "rows returned"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left, p.Legend.YOffs = true, true, -2*vg.Millimeter
	p.Add(plotter.NewGrid())
	return p
}

func logarithmic(p *plot.Plot) {
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
}

// colors tell the series apart for people with any colour vision.
var colors = []color.RGBA{{0, 114, 178, 255}, {213, 94, 0, 255}, {86, 180, 233, 255}, {230, 159, 0, 255}}

// add draws a curve with the range of its latencies.
func add(p *plot.Plot, c curve, number int, legend bool) error {
	xys := make(plotter.XYs, len(c.points))
	errs := make(plotter.YErrors, len(c.points))
	for i, pt := range c.points {
		xys[i] = plotter.XY{X: pt.rows, Y: pt.median}
		errs[i].Low, errs[i].High = pt.median-pt.min, pt.max-pt.median
	}
	line, dots, err := plotter.NewLinePoints(xys)
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(struct {
		plotter.XYer
		plotter.YErrorer
	}{xys, errs})
	if err != nil {
		return err
	}
	shade := colors[number%len(colors)]
	line.Color, line.Width = shade, vg.Points(1.5)
	dots.Color, dots.Shape, dots.Radius = shade, draw.CircleGlyph{}, vg.Points(2)
	bars.Color, bars.Width, bars.CapWidth = shade, vg.Points(0.5), vg.Points(3)
	p.Add(bars, line, dots)
	if legend {
		p.Legend.Add(c.series, line, dots)
	}
	return nil
}

func sameRange(a, b *plot.Plot) {
	low, high := min(a.Y.Min, b.Y.Min), max(a.Y.Max, b.Y.Max)
	a.Y.Min, b.Y.Min, a.Y.Max, b.Y.Max = low, low, high, high
}

func save(path string, panels []*plot.Plot) error {
	const width, height = 36 * vg.Centimeter, 13 * vg.Centimeter
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch filepath.Ext(path) {
	case ".svg":
		canvas = vgsvg.New(width, height)
	case ".png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.New(width, height)}
	default:
		return fmt.Errorf("%s is neither .svg nor .png", path)
	}
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 5 * vg.Millimeter, PadTop: 3 * vg.Millimeter, PadBottom: 3 * vg.Millimeter, PadLeft: 3 * vg.Millimeter, PadRight: 5 * vg.Millimeter}
	dc := draw.New(canvas)
	dc.SetColor(color.White)
	dc.Fill(dc.Rectangle.Path())
	cells := plot.Align([][]*plot.Plot{panels}, tiles, dc)
	for i, p := range panels {
		p.Draw(cells[0][i])
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
