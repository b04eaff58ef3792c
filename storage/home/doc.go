// Package home is what every engine asks of the directory that a store lives in,
// whatever the engine: the marker that makes it a store's, directories that lie in
// others, writing small files whole, and who of this process has it open.
//
//	Marker, ReadMarker, WriteMarker    the file SCANODE: engine and format
//	NotInside, NotDangling             directories in which no store may be made
//	MakeDir, SyncDir, WriteWhole       changes that survive loss of power
//	Book                               the directories open in this process
//
// Nothing here keeps a lock on the disk; engines do, on the file LOCK.
//
// All functions may be called from any goroutine.
package home
