package server

import (
	"fmt"

	"scanode/etf"
	"scanode/storage"
)

// maxLostTexts bounds how much of what a repair has lost is told one by one.
const maxLostTexts = 1000

// destroy answers {destroy, Dir, Opts}.
func (c *call) destroy() {
	err := c.maintain(func(engine storage.Engine, dir string) error { return engine.Destroy(dir) })
	if err != nil {
		c.fail(err)
		return
	}
	c.ok()
}

// repair answers {repair, Dir, Opts}.
func (c *call) repair() {
	var done storage.Repaired
	err := c.maintain(func(engine storage.Engine, dir string) (err error) {
		done, err = engine.Repair(dir)
		return err
	})
	if err != nil {
		c.fail(err)
		return
	}
	lost := etf.List{}
	for i, what := range done.Lost {
		if i == maxLostTexts {
			lost = append(lost, fmt.Appendf(nil, "and %d more", len(done.Lost)-i))
			break
		}
		lost = append(lost, []byte(what))
	}
	c.okTerm(etf.Map{
		{Key: etf.Atom("rows"), Value: done.Rows},
		{Key: etf.Atom("lost"), Value: lost},
		{Key: etf.Atom("aside"), Value: []byte(done.Aside)},
	})
}

// maintain does something to the store in a directory that nobody has open, and
// keeps others from opening it meanwhile.
func (c *call) maintain(do func(engine storage.Engine, dir string) error) error {
	s := c.link.s
	name, err := readDir(c.arg())
	if err != nil {
		return err
	}
	o := newOptions(c.arg())
	engine := s.cfg.Engines[o.atom("engine", "lsm", s.engineNames()...)]
	if err := o.done(); err != nil {
		return err
	}
	dir, err := s.cfg.Resolve(name)
	if err != nil {
		return reasonf(tagBadPath, "%s: %v", name, err)
	}
	if err := s.reserve(dir); err != nil {
		return err
	}
	defer s.settle(dir, nil)
	return do(engine, dir)
}

// isEmpty answers {is_empty, Id}.
func (c *call) isEmpty() {
	id, _, err := readIDAndRest(c.arg())
	if err != nil {
		c.fail(err)
		return
	}
	v, err := c.link.s.acquire(id)
	if err != nil {
		c.fail(err)
		return
	}
	defer v.release()
	empty, err := v.isEmpty()
	if err != nil {
		c.fail(err)
		return
	}
	c.okTerm(boolTerm(empty))
}

func (v view) isEmpty() (bool, error) {
	if v.handle == nil {
		return v.db.IsEmpty()
	}
	it, err := v.source.NewIter(storage.Range{})
	if err != nil {
		return false, err
	}
	found := it.First()
	return !found, it.Close()
}
