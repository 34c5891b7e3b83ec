package datadir

import (
	"sync"
	"testing"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/config"
)

func TestDiskFloorRefusesWritesBelowTheFloor(t *testing.T) {
	for _, c := range []struct {
		floor config.DiskFloor
		code  fanfare.Code
	}{
		{config.DiskFloor{}, ""},
		{config.DiskFloor{SizeBytes: 1}, ""},
		{config.DiskFloor{SizeBytes: 1 << 60}, fanfare.DiskFull},
		{config.DiskFloor{Percent: 100}, fanfare.DiskFull},
		{config.DiskFloor{Percent: 100, SizeBytes: 1}, ""},
	} {
		f := &DiskFloor{Dir: t.TempDir(), Floor: c.floor}
		for range 2 {
			if err := f.Check(); (err == nil) != (c.code == "") || err != nil && fanfare.CodeOf(err) != c.code {
				t.Errorf("floor %+v: %v, want %q", c.floor, err, c.code)
			}
		}
		if f.Free() <= 0 {
			t.Errorf("%d bytes are free", f.Free())
		}
	}
}

func TestDiskFloorRefusesNobodyDuringTheFirstCheck(t *testing.T) {
	for range 200 {
		f := &DiskFloor{Dir: t.TempDir(), Floor: config.DiskFloor{SizeBytes: 1}}
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				if err := f.Check(); err != nil {
					t.Error(err)
				}
			})
		}
		callers.Wait()
	}
}
