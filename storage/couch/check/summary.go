package check

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Summary adds up reports, as cfcheck does. TypeCompact counts as a database.
type Summary struct {
	DB    DatabaseSummary `json:"db"`
	View  ViewSummary     `json:"view"`
	Tree  ViewSummary     `json:"tree"`
	Error ErrorSummary    `json:"error"`
	// Damaged counts the files with damage; those without a header are among them.
	Damaged int64 `json:"damaged"`
}

// DatabaseSummary is of all databases.
type DatabaseSummary struct {
	FilesCount     int64          `json:"files_count"`
	FilesSize      int64          `json:"files_size"`
	ActiveSize     int64          `json:"active_size"`
	ExternalSize   int64          `json:"external_size"`
	DocCount       int64          `json:"doc_count"`
	DelDocCount    int64          `json:"del_doc_count"`
	DocInfoCount   int64          `json:"doc_info_count"`
	PurgedDocCount int64          `json:"purged_doc_count"`
	Conflicts      int64          `json:"conflicts"`
	DiskVersion    []VersionCount `json:"disk_version"`
}

// VersionCount is how many databases have a disk version.
type VersionCount struct {
	DiskVersion int64 `json:"disk_version"`
	FilesCount  int64 `json:"files_count"`
}

// ViewSummary is of all view files, or of all files of trees.
type ViewSummary struct {
	FilesCount   int64 `json:"files_count"`
	FilesSize    int64 `json:"files_size"`
	ActiveSize   int64 `json:"active_size"`
	ExternalSize int64 `json:"external_size"`
}

// ErrorSummary is of all files without a header, and of those that could not be read.
type ErrorSummary struct {
	FilesCount int64 `json:"files_count"`
	FilesSize  int64 `json:"files_size"`
}

// Add adds r.
func (s *Summary) Add(r *Report) {
	if r.Damaged() {
		s.Damaged++
	}
	switch r.FileType {
	case TypeDatabase, TypeCompact:
		d := &s.DB
		d.FilesCount++
		d.FilesSize += r.FileSize
		d.ActiveSize += r.ActiveSize
		d.ExternalSize += r.ExternalSize
		d.DocCount += r.DocCount
		d.DelDocCount += r.DelDocCount
		d.DocInfoCount += r.DocInfoCount
		d.PurgedDocCount += r.PurgedDocCount
		d.Conflicts += r.Conflicts
		if r.DiskVersion != nil {
			d.count(*r.DiskVersion)
		}
	case TypeView:
		s.View.add(r)
	case TypeTree, TypeStore:
		s.Tree.add(r)
	default:
		s.Error.FilesCount++
		s.Error.FilesSize += r.FileSize
	}
}

func (d *DatabaseSummary) count(version int64) {
	i, ok := slices.BinarySearchFunc(d.DiskVersion, version, func(v VersionCount, version int64) int {
		return cmp.Compare(v.DiskVersion, version)
	})
	if !ok {
		d.DiskVersion = slices.Insert(d.DiskVersion, i, VersionCount{DiskVersion: version})
	}
	d.DiskVersion[i].FilesCount++
}

func (v *ViewSummary) add(r *Report) {
	v.FilesCount++
	v.FilesSize += r.FileSize
	v.ActiveSize += r.ActiveSize
	v.ExternalSize += r.ExternalSize
}

// WriteText writes s for people to w.
func (s *Summary) WriteText(w io.Writer) error {
	files := s.DB.FilesCount + s.View.FilesCount + s.Tree.FilesCount + s.Error.FilesCount
	size := s.DB.FilesSize + s.View.FilesSize + s.Tree.FilesSize + s.Error.FilesSize
	_, err := fmt.Fprintf(w, "%d files of %d bytes: %d databases, %d views, %d of trees, %d without a header; %d documents; damaged: %d\n",
		files, size, s.DB.FilesCount, s.View.FilesCount, s.Tree.FilesCount, s.Error.FilesCount, s.DB.DocCount, s.Damaged)
	return err
}
