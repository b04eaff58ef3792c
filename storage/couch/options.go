package couch

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"scanode/storage"
	"scanode/storage/couch/btree"
	"scanode/storage/couch/file"
)

// settings are the engine options of one store, checked.
type settings struct {
	log         bool  // commits go to a log behind the last header
	bufferBytes int64 // of batches in memory until tree and header are written
	logBatches  int64 // in the log, the same
	flushMillis int64 // how long a batch that is not synced is in memory only
	cacheBytes  int64
	compression file.Compression
	policy      btree.Policy
	paranoid    bool

	compactPercent  int64 // of garbage in the file from which on it is compacted; 0: never
	compactMinBytes int64 // of the file
}

// defaultSettings are for a store that only this program opens: its header is none that
// CouchDB knows, so a log behind it can be lost to nobody; and a batch in the log is safe
// from the end of the process at once.
func defaultSettings() settings {
	return settings{
		log:         true,
		bufferBytes: 4 << 20,
		logBatches:  5000,
		flushMillis: 1000,
		cacheBytes:  8 << 20,
		compression: file.DefaultCompression,
		policy:      btree.Scanode,

		compactPercent:  60,
		compactMinBytes: 1 << 20,
	}
}

// option is how a value of the protocol becomes a setting.
type option struct {
	min, max int64                             // for integers
	number   func(s *settings, n int64)        // takes an integer within the bounds
	flag     func(s *settings, b bool)         // takes a boolean
	word     func(s *settings, w string) error // takes a word
}

// options are all options by their names. write_buffer_size, compression and
// paranoid_checks mean what they mean to the engine lsm.
var options = map[string]option{
	"commit": {word: func(s *settings, w string) error {
		if s.log = w == "log"; !s.log && w != "header" {
			return fmt.Errorf("%q is none of header, log", plain(w))
		}
		return nil
	}},
	"write_buffer_size": {min: 64 << 10, max: 1 << 30, number: func(s *settings, n int64) { s.bufferBytes = n }},
	"log_batches":       {min: 1, max: 1 << 20, number: func(s *settings, n int64) { s.logBatches = n }},
	"flush_ms":          {min: 1, max: 3600_000, number: func(s *settings, n int64) { s.flushMillis = n }},
	"node_cache_size":   {min: 64 << 10, max: 16 << 30, number: func(s *settings, n int64) { s.cacheBytes = n }},
	"compression": {word: func(s *settings, w string) (err error) {
		s.compression, err = file.ParseCompression(plain(w))
		return err
	}},
	"policy": {word: func(s *settings, w string) (err error) {
		s.policy, err = btree.ParsePolicy(plain(w))
		return err
	}},
	"compact_percent":  {min: 0, max: 99, number: func(s *settings, n int64) { s.compactPercent = n }},
	"compact_min_size": {min: 0, max: 1 << 50, number: func(s *settings, n int64) { s.compactMinBytes = n }},
	"paranoid_checks":  {flag: func(s *settings, b bool) { s.paranoid = b }},
}

// parseSettings checks an option map. Options are looked at in the order of their names,
// so that the same map gives the same error.
func parseSettings(given map[string]any) (settings, error) {
	s := defaultSettings()
	for _, name := range slices.Sorted(maps.Keys(given)) {
		o, ok := options[name]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(options)), ", ")
			return s, fmt.Errorf("%w: unknown option %q (known: %s)", storage.ErrOption, plain(name), known)
		}
		if err := o.set(&s, given[name]); err != nil {
			return s, fmt.Errorf("%w: %s: %v", storage.ErrOption, name, err)
		}
	}
	return s, nil
}

func (o option) set(s *settings, value any) error {
	switch v := value.(type) {
	case int64:
		if o.number == nil {
			break
		}
		if v < o.min || v > o.max {
			return fmt.Errorf("%d is not within %d to %d", v, o.min, o.max)
		}
		o.number(s, v)
		return nil
	case bool:
		if o.flag != nil {
			o.flag(s, v)
			return nil
		}
	case string:
		if o.word != nil {
			return o.word(s, v)
		}
	}
	want := "a word"
	if o.number != nil {
		want = "an integer"
	} else if o.flag != nil {
		want = "true or false"
	}
	return fmt.Errorf("needs %s, got %s", want, plain(fmt.Sprint(value)))
}

// plain cuts what somebody gave to a length that can be shown.
func plain(text string) string {
	const most = 100
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// treeOptions are those of the trees of all stores. Keys and values are binaries, so Erlang's
// order is that of bytes, and short separators are seen by nobody.
func (s *settings) treeOptions(cache *btree.Cache) btree.Options {
	return btree.Options{
		Reducer:     btree.Count{},
		Policy:      s.policy,
		Compression: s.compression,
		ShortKeys:   true,
		Cache:       cache,
	}
}

// fileOptions are those of the files of all stores.
var fileOptions = file.Options{SumAll: true, Guarded: true}
