package lsm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cockroachdb/pebble/v2/sstable/block"

	"scanode/storage"
)

// settings are the engine options of one store, checked.
type settings struct {
	writeBufferBytes int64 // at most
	blockBytes       int64
	compression      *block.CompressionProfile
	bloomBits        int64 // 0: no filter
	paranoid         bool  // every table is read before the store opens
	expiryEnabled    bool
	expiryMinutes    int64 // 0: rows do not expire
	wholeFile        bool  // of expired rows only runs are deleted
	tiers            tiers
}

// tiers are the prefixes of LevelDB's tiered storage, looked at only to find rows
// of LevelDB's.
type tiers struct{ fast, slow string }

// defaultSettings favour many stores in one process: memtables are small, and
// blocks of 32 KiB make scans a third cheaper than LevelDB's 4 KiB.
func defaultSettings() settings {
	return settings{
		writeBufferBytes: 16 << 20,
		blockBytes:       32 << 10,
		compression:      block.SnappyCompression,
		bloomBits:        10,
	}
}

// Bounds of the options, LevelDB's where it has some. The largest write buffer
// keeps a stalled store (four memtables) under 4 GiB.
const (
	minWriteBufferBytes, maxWriteBufferBytes = 64 << 10, 1 << 30
	minBlockBytes, maxBlockBytes             = 1 << 10, 4 << 20
	minBloomBits, maxBloomBits               = 1, 64
	maxExpiryMinutes                         = 1 << 30 // two thousand years
	maxPrefixBytes                           = 255
)

// optionSetters maps the name of an option to the function that checks a value
// and stores it. The names are eleveldb's.
//
// Differs from eleveldb: names without effect here (max_open_files,
// block_restart_interval, cache_size, tiered_slow_level, …) are refused, for caches
// and descriptors belong to the process; eleveldb ignores what it does not know.
var optionSetters = map[string]func(*settings, any) error{
	"write_buffer_size": func(s *settings, v any) error {
		return setInt(&s.writeBufferBytes, v, minWriteBufferBytes, maxWriteBufferBytes)
	},
	"sst_block_size": func(s *settings, v any) error {
		return setInt(&s.blockBytes, v, minBlockBytes, maxBlockBytes)
	},
	"compression":     setCompression,
	"use_bloomfilter": setBloom,
	"paranoid_checks": func(s *settings, v any) error { return setBool(&s.paranoid, v) },
	"expiry_enabled":  func(s *settings, v any) error { return setBool(&s.expiryEnabled, v) },
	"expiry_minutes": func(s *settings, v any) error {
		return setInt(&s.expiryMinutes, v, 0, maxExpiryMinutes)
	},
	"whole_file_expiry":  func(s *settings, v any) error { return setBool(&s.wholeFile, v) },
	"tiered_fast_prefix": func(s *settings, v any) error { return setPrefix(&s.tiers.fast, v) },
	"tiered_slow_prefix": func(s *settings, v any) error { return setPrefix(&s.tiers.slow, v) },
}

// parseSettings checks an option map. Options are looked at in the order of
// their names, so that the same map gives the same error.
func parseSettings(options map[string]any) (settings, error) {
	s := defaultSettings()
	for _, name := range slices.Sorted(maps.Keys(options)) {
		set, ok := optionSetters[name]
		if !ok {
			known := strings.Join(slices.Sorted(maps.Keys(optionSetters)), ", ")
			return s, fmt.Errorf("%w: unknown option %s (known: %s)", storage.ErrOption, plain(name), known)
		}
		if err := set(&s, options[name]); err != nil {
			return s, fmt.Errorf("%w: %s: %v", storage.ErrOption, name, err)
		}
	}
	return s, nil
}

func setInt(dst *int64, v any, low, high int64) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("needs an integer, got %s", plain(v))
	}
	if n < low || n > high {
		return fmt.Errorf("%d is not within %d to %d", n, low, high)
	}
	*dst = n
	return nil
}

func setBool(dst *bool, v any) error {
	b, ok := v.(bool)
	if !ok {
		return fmt.Errorf("needs true or false, got %s", plain(v))
	}
	*dst = b
	return nil
}

func setPrefix(dst *string, v any) error {
	p, ok := v.(string)
	if !ok || len(p) > maxPrefixBytes {
		return fmt.Errorf("needs a string of at most %d bytes, got %s", maxPrefixBytes, plain(v))
	}
	*dst = p
	return nil
}

// plain is a name or value as whoever gave it wrote it, cut to a bound.
func plain(v any) string {
	const most = 100
	text := fmt.Sprint(v)
	if s, ok := v.(string); ok && (s == "" || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })) {
		text = strconv.Quote(s)
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// setCompression takes snappy, lz4, zstd or none, and eleveldb's true and false.
//
// Differs from eleveldb: lz4 is MinLZ, what pebble has for it: of the same
// family, as fast, and smaller. It binds nobody, for each block says how it was
// compressed.
func setCompression(s *settings, v any) error {
	switch v {
	case "snappy", true:
		s.compression = block.SnappyCompression
	case "lz4":
		s.compression = block.MinLZCompression
	case "zstd":
		s.compression = block.ZstdCompression
	case "none", false:
		s.compression = block.NoCompression
	default:
		return fmt.Errorf("%s is none of snappy, lz4, zstd, none", plain(v))
	}
	return nil
}

// setBloom takes true (16 bits a key, as eleveldb), false or 0 (no filter), or a number of
// bits.
func setBloom(s *settings, v any) error {
	switch v {
	case true:
		s.bloomBits = 16
		return nil
	case false, int64(0):
		s.bloomBits = 0
		return nil
	}
	if _, ok := v.(int64); !ok {
		return fmt.Errorf("needs true, false or an integer, got %s", plain(v))
	}
	return setInt(&s.bloomBits, v, minBloomBits, maxBloomBits)
}
