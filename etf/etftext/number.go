package etftext

import (
	"math"
	"strconv"
	"strings"
)

// float prints the shortest digits that read back as the same float, in plain
// or scientific notation, whichever is shorter, and scientific from 2^53 on,
// where plain would show digits the float does not have. That is what
// io_lib_format:fwrite_g/1 does.
func (p *printer) float(f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		p.text("#Go<float64 that is not finite>")
		return
	}
	if math.Signbit(f) {
		p.text("-")
		f = -f
	}
	if f == 0 {
		p.text("0.0")
		return
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, 64), "e")
	exp, _ := strconv.Atoi(exponent)
	digits := strings.Replace(mantissa, ".", "", 1)
	p.text(layout(digits, exp+1, f >= 1<<53))
}

// layout writes 0.digits * 10^place.
func layout(digits string, place int, large bool) string {
	n := len(digits)
	if place > 0 && place < n && !large {
		return digits[:place] + "." + digits[place:]
	}
	if place == 0 && !large {
		return "0." + digits
	}
	exponent := strconv.Itoa(place - 1)
	cost := len(exponent) + 2
	if n == 1 {
		cost++ // for the 0 after the point
	}
	switch {
	case large:
	case place < 0 && 2-place <= cost:
		return "0." + strings.Repeat("0", -place) + digits
	case place >= n && place-n+2 <= cost:
		return digits + strings.Repeat("0", place-n) + ".0"
	}
	if n == 1 {
		return digits + ".0e" + exponent
	}
	return digits[:1] + "." + digits[1:] + "e" + exponent
}
