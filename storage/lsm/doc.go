// Package lsm keeps stores in log-structured merge trees: the contract of
// package storage over Pebble, one Pebble database a directory.
//
//	Engine   block cache, table files, places for compactions: shared by all
//	  store    one directory: Apply, Get, snapshots; the park state
//	    pebble.DB
//	      fence    the store's file system: what happens when the disk fails
//	        vfs.FS
//
// # On disk
//
// A directory holds Pebble's files; SCANODE, which makes it ours (see markerName);
// SYNCED, which says how much of log and manifest is durable (see syncedName); and
// LOG, for operators (see opLog). While Destroy or Repair is under way there is a
// journal too (see journalDestroy), and after a Repair a directory damaged-N with
// the old files. Keys are stored as they are, but for an empty one or one that
// begins with a zero byte: these carry one more zero byte in front (see
// storedKey). Values are stored as they are, or, in a store created with expiry,
// behind the time of their writing (see timeBytes).
//
// # Options
//
// See docs/protocol.md §2.1 for their names, defaults and bounds, and
// optionSetters. They bind what is written from then on; what is there stays
// readable.
//
// # Failure
//
// A store is live, parked or closed. It is parked when a write to its log or its
// manifest fails, when flushes keep failing, when writes wait for compactions
// that fail, and when Pebble finds an invariant of its own broken. From then on the disk is not written; calls return
// ErrParked, and writes that were under way ErrUnknown as well. Closing it and
// opening it anew gives it back as a crash would have left it. See fence for how
// Pebble is brought to survive this; only a panic on a goroutine of its own can
// still end the process.
//
// A table block that cannot be read fails the call that needs it, with
// ErrCorrupt when its checksum is wrong, and parks nothing: other ranges can
// still be read.
//
// Open refuses a store with ErrCorrupt when its log or its manifest is known to
// be damaged where it was synced, or the log is missing. Close flushes the log
// to tables where that is a matter of seconds, so it is seldom anything but
// empty. Of a store that was not closed this is known:
//
//   - after a crash of the process, everything that was synced
//   - after loss of power, what SYNCED and the log itself told when their bytes
//     reached the disk, usually all but the last seconds
//
// What is not known to have been synced may be torn, and the log then ends at its
// first bad record, as loss of power leaves it. Damage there cannot be told from
// that. Nor can it when SYNCED is gone or damaged as well. The way out of a store
// that Open refuses is Repair.
//
// # Goroutines and lifetimes
//
// As package storage has it. Only its owner ever touches the Pebble iterator
// behind an Iter. So Close does not end Pebble while iterators are open: it gives
// the directory back and leaves Pebble, cut off from the disk, to the owner of
// the last iterator, who closes it with his next call. Slices of an iterator
// stay valid over Close until then. An iterator that is never closed keeps
// Pebble's memory, goroutines and open files.
//
// # Memory
//
// Config.MemoryBytes is one budget for all stores (see memory). The block cache is
// the engine's. A store holds up to three write buffers; they begin at 256 KiB and
// grow to the option write_buffer_size or the store's share of the budget. A batch
// of half a write buffer or more counts as one itself, until it is flushed. Of
// batches of 1 MiB or more a part of the budget at once is on its way in all
// stores; the others wait (see budget). Flushing such a batch takes about five
// times its size for a while. None of it stays in use, but the runtime returns
// memory late: the program sets a memory limit (GOMEMLIMIT).
//
// # Source of truth
//
// For the files, Pebble v2.1.7 at FormatNewest of that version.
package lsm
