package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// SQLite does not remove all bytes of a deleted row from its file. With secure_delete it
// overwrites the row; but rows that were moved when a page was split may have left copies in
// the unused part of a page, and the write-ahead log has old pages. So after an erasure the log
// is checkpointed and emptied, the file is searched for the erased names, and the unused part of
// each page that contains one is overwritten.

// securely runs fn while conn overwrites deleted data.
func securely(conn *sqlite.Conn, fn func() error) error {
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA secure_delete=ON", nil); err != nil {
		return err
	}
	return errors.Join(fn(), sqlitex.ExecuteTransient(conn, "PRAGMA secure_delete=OFF", nil))
}

// emptyLog moves the write-ahead log into the file and truncates it.
func emptyLog(conn *sqlite.Conn) error {
	busy := false
	err := sqlitex.ExecuteTransient(conn, "PRAGMA wal_checkpoint(TRUNCATE)", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *sqlite.Stmt) error { busy = stmt.ColumnInt(0) != 0; return nil }})
	if err == nil && busy {
		err = errors.New("the write-ahead log could not be truncated because a reader is still using it")
	}
	return err
}

// A scrubber has the writing connection of a file for one call.
type scrubber struct {
	file   func() (io.ReaderAt, error)
	writer func(func(*sqlite.Conn) error) error
}

// scrub overwrites the unused bytes of all pages in which one of names occurs,
// ignoring ASCII case. It searches without the writer.
func (s *scrubber) scrub(names [][]byte) error {
	if err := s.writer(emptyLog); err != nil || len(names) == 0 {
		return err
	}
	file, err := s.file()
	if err != nil {
		return err
	}
	pages, err := pagesWith(file, names)
	if err != nil || len(pages) == 0 {
		return err
	}
	return s.writer(func(conn *sqlite.Conn) error {
		err := transact(conn, func(conn *sqlite.Conn) error { return clean(conn, pages) })
		return errors.Join(err, emptyLog(conn))
	})
}

const (
	searchBytes  = 1 << 20
	sqliteHeader = 100 // bytes of the first page before its tree
)

// pagesWith searches a file for names and returns the numbers of the pages in
// which one begins, from 1.
func pagesWith(file io.ReaderAt, names [][]byte) ([]int64, error) {
	f := io.NewSectionReader(file, 0, math.MaxInt64)
	longest := 0
	for _, n := range names {
		longest = max(longest, len(n))
	}
	size := int64(0)
	var pages []int64
	var at int64 // of buf[0]
	buf := make([]byte, 0, searchBytes+longest)
	for {
		n, err := io.ReadFull(f, buf[len(buf):cap(buf)])
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return nil, err
		}
		fresh := buf[len(buf) : len(buf)+n]
		buf = buf[:len(buf)+n]
		if size == 0 && len(buf) >= sqliteHeader {
			if size = int64(binary.BigEndian.Uint16(buf[16:])); size == 1 {
				size = 65536
			}
		}
		lower(fresh)
		for _, name := range names {
			for from := 0; ; {
				i := bytes.Index(buf[from:], name)
				if i < 0 {
					break
				}
				pages = append(pages, (at+int64(from+i))/size+1)
				from += i + 1
			}
		}
		if last {
			slices.Sort(pages)
			return slices.Compact(pages), nil
		}
		keep := copy(buf, buf[max(0, len(buf)-longest+1):])
		at += int64(len(buf) - keep)
		buf = buf[:keep]
	}
}

func lower(b []byte) {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
}

// clean overwrites the unused bytes of pages. It uses SQLite's own table of pages, so that the change is a transaction
// like any other.
func clean(conn *sqlite.Conn, pages []int64) error {
	free, lists, err := freePages(conn)
	if err != nil {
		return err
	}
	for _, number := range pages {
		page, err := readPage(conn, number)
		if err != nil {
			return err
		}
		if page == nil {
			continue
		}
		if free[number] {
			clear(page)
		} else if entries, ok := lists[number]; ok {
			clear(page[min(8+4*entries, len(page)):])
		} else if !clearUnused(page, number) {
			continue
		}
		err = sqlitex.ExecuteTransient(conn, "UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1", &sqlitex.ExecOptions{Args: []any{number, page}})
		if err != nil {
			return fmt.Errorf("page %d: %w", number, err)
		}
	}
	return nil
}

func readPage(conn *sqlite.Conn, number int64) (page []byte, err error) {
	err = sqlitex.ExecuteTransient(conn, "SELECT data FROM sqlite_dbpage WHERE pgno = ?1", &sqlitex.ExecOptions{Args: []any{number},
		ResultFunc: func(stmt *sqlite.Stmt) error { page = bytesAt(stmt, 0); return nil }})
	return page, err
}

// freePages returns the leaves of the list of free pages, which contain no data (https://www.sqlite.org/fileformat2.html,
// section 1.5). lists are the pages that list them, with the number of leaves on each.
func freePages(conn *sqlite.Conn) (free map[int64]bool, lists map[int64]int, err error) {
	free, lists = map[int64]bool{}, map[int64]int{}
	first, err := readPage(conn, 1)
	if err != nil {
		return nil, nil, err
	}
	for trunk := int64(binary.BigEndian.Uint32(first[32:])); trunk != 0; {
		if _, seen := lists[trunk]; seen {
			break
		}
		page, err := readPage(conn, trunk)
		if err != nil {
			return nil, nil, err
		}
		entries := 0
		if len(page) >= 8 {
			entries = int(binary.BigEndian.Uint32(page[4:]))
		}
		if 8+4*entries > len(page) {
			return nil, nil, fmt.Errorf("free page %d is damaged", trunk)
		}
		lists[trunk] = entries
		for i := range entries {
			free[int64(binary.BigEndian.Uint32(page[8+4*i:]))] = true
		}
		trunk = int64(binary.BigEndian.Uint32(page))
	}
	return free, lists, nil
}

// clearUnused overwrites the gap and the free blocks of a b-tree page (section 1.6 of the same document). It returns false
// for other pages.
func clearUnused(page []byte, number int64) bool {
	head := page
	offset := 0
	if number == 1 {
		offset = sqliteHeader
		head = page[offset:]
	}
	pointers := 8
	switch head[0] {
	case 2, 5:
		pointers = 12
	case 10, 13:
	default:
		return false
	}
	from := offset + pointers + 2*int(binary.BigEndian.Uint16(head[3:]))
	to := int(binary.BigEndian.Uint16(head[5:]))
	if to == 0 {
		to = 65536
	}
	if from > to || to > len(page) {
		return false
	}
	clear(page[from:to])
	for at := int(binary.BigEndian.Uint16(head[1:])); at != 0; {
		if at+4 > len(page) {
			return false
		}
		size := int(binary.BigEndian.Uint16(page[at+2:]))
		if size < 4 || at+size > len(page) {
			return false
		}
		next := int(binary.BigEndian.Uint16(page[at:]))
		clear(page[at+4 : at+size])
		if next != 0 && next <= at {
			return false
		}
		at = next
	}
	return true
}
