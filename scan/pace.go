package scan

// firstBatchBytes is the size of the first batch of a scan with a slow start.
const firstBatchBytes = 1 << 10

// pace is how large batches are. With a slow start they double from
// firstBatchBytes on, and the window follows so that one batch is under way, and
// not a second, until it has its full size: a consumer that wants few rows and
// says so when it has them costs the reading of few more, and one that wants all
// waits some round trips longer in all.
type pace struct {
	full, window int // bytes of a batch and of the window in the end
	bytes        int // of a batch without the bound full; 0: no slow start, or it is over
}

func newPace(req *Request, w *Window) pace {
	p := pace{full: req.MaxBatchBytes, window: req.MaxUnackedBytes}
	if req.SlowStart {
		p.bytes = firstBatchBytes
		p.open(w)
	}
	return p
}

// batchBytes is the size at which the batch that is being made is sent.
func (p *pace) batchBytes() int {
	if p.bytes == 0 {
		return p.full
	}
	return min(p.bytes, p.full)
}

// sent says that a batch was sent.
func (p *pace) sent(w *Window) {
	if p.bytes > 0 {
		p.bytes *= 2
		p.open(w)
	}
}

// open gives the window what the next batch may find unacknowledged: the one
// before, half its size, and not the two before.
func (p *pace) open(w *Window) {
	credit := p.bytes/2 + p.bytes/8
	if credit >= p.window && p.bytes >= p.full {
		credit, p.bytes = p.window, 0
	}
	w.SetMax(min(credit, p.window))
}
