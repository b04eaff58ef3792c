package filter

import (
	"regexp"
	"regexp/syntax"
)

// Bounds of regular expressions. One is matched in time that grows with its
// instructions times the length of the text, and nothing ends it before it is
// done, so that both are kept small: the first here, the second by what is stored.
const (
	maxPattern = 1024 // bytes of one
	maxSteps   = 2000 // instructions of all of a filter
)

// pattern compiles the regular expression at element 3. Its size is estimated
// before it is compiled: a few bytes such as (a{99}){99} can stand for a program
// of any size.
func (p *parser) pattern(c comparison, text string) (*regexp.Regexp, *Error) {
	if len(text) > maxPattern {
		return nil, c.errorf(3, "regular expression of %d bytes, at most %d are allowed", len(text), maxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, c.errorf(3, "%v", err)
	}
	if p.steps += 2 + steps(tree); p.steps > maxSteps {
		return nil, c.errorf(3, "regular expressions of more than %d steps: %s", maxSteps, show([]byte(text)))
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, c.errorf(3, "%v", err)
	}
	return re, nil
}

// steps bounds from above how many instructions re is compiled to, not counting
// further than maxSteps. The parser of the library bounds the depth of re.
func steps(re *syntax.Regexp) int {
	n := max(2, len(re.Rune)) // two for a group
	if re.Op != syntax.OpLiteral {
		n = 2 + len(re.Sub) // an alternative takes one for every branch
	}
	for _, sub := range re.Sub {
		if n += steps(sub); n > maxSteps {
			return maxSteps + 1
		}
	}
	if re.Op == syntax.OpRepeat {
		// x{1,3} is compiled as x(x(x)?)?
		n = (n - 2) * max(1, re.Min, re.Max) // Max is -1 without a bound
	}
	return min(n, maxSteps+1)
}
