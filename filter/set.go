package filter

// maxLinear is up to how many constants a list is searched from its beginning.
const maxLinear = 8

// set is the list of an in. Short lists are compared one by one, others are
// hashed; one of the two fields per kind is in use.
type set struct {
	double bool // numbers are the bits of doubles
	nums   []uint64
	texts  [][]byte
	byNum  map[uint64]struct{}
	byText map[string]struct{}
}

// newSet returns the set of constants of type t.
func newSet(t fieldType, list []operand) set {
	s := set{double: t == typeDouble}
	switch {
	case len(list) <= maxLinear:
		for _, k := range list {
			s.nums = append(s.nums, s.canonical(k.num))
			s.texts = append(s.texts, k.text)
		}
	case t.bytes():
		s.byText = make(map[string]struct{}, len(list))
		for _, k := range list {
			s.byText[string(k.text)] = struct{}{}
		}
	default:
		s.byNum = make(map[uint64]struct{}, len(list))
		for _, k := range list {
			s.byNum[s.canonical(k.num)] = struct{}{}
		}
	}
	return s
}

// negativeZero is the bits of -0.0, which equals 0.0.
const negativeZero = 1 << 63

// canonical maps numbers that are equal to one representative. No constant is
// NaN, so NaN, which equals nothing, is not found either.
func (s *set) canonical(num uint64) uint64 {
	if s.double && num == negativeZero {
		return 0
	}
	return num
}

func (s *set) hasNumber(num uint64) bool {
	num = s.canonical(num)
	if s.byNum != nil {
		_, ok := s.byNum[num]
		return ok
	}
	for _, n := range s.nums {
		if n == num {
			return true
		}
	}
	return false
}

func (s *set) hasText(text []byte) bool {
	if s.byText != nil {
		_, ok := s.byText[string(text)]
		return ok
	}
	for _, t := range s.texts {
		if string(t) == string(text) {
			return true
		}
	}
	return false
}
