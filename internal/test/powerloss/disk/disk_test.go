package disk

import (
	"bytes"
	"syscall"
	"testing"
)

// file makes a file with stored content.
func file(t *testing.T, d *Disk, content string) *Inode {
	t.Helper()
	n, e := d.Make(d.Root(), "file", File, 0o600, 0, 0, "")
	must(t, e, d.Write(n, 0, []byte(content)), d.Sync(n), d.Sync(d.Root()))
	return n
}

func must(t *testing.T, all ...syscall.Errno) {
	t.Helper()
	for _, e := range all {
		if e != 0 {
			t.Fatal(e)
		}
	}
}

func TestAWriteWhoseSyncFailedNeverReplacesALaterOne(t *testing.T) {
	for seed := range uint64(200) {
		d := New()
		n := file(t, d, "aaaaaaaa")
		must(t, d.Write(n, 2, []byte("bbbb")))
		d.SetFaults(Faults{IOErrors: 1, SyncsOnly: true})
		if e := d.Sync(n); e != syscall.EIO {
			t.Fatal(e)
		}
		d.SetFaults(Faults{})
		must(t, d.Write(n, 3, []byte("cc")), d.Sync(n))
		d.LosePower(seed)
		text, e := d.Read(n, 0, 100)
		must(t, e)
		if !bytes.Equal(text[3:5], []byte("cc")) || text[0] != 'a' || text[7] != 'a' {
			t.Fatalf("seed %d: %s", seed, text)
		}
	}
}

func TestAFailedSyncOfADirectoryStoresNothingLater(t *testing.T) {
	d := New()
	_, e := d.Make(d.Root(), "name", File, 0o600, 0, 0, "")
	must(t, e)
	d.SetFaults(Faults{IOErrors: 1, SyncsOnly: true})
	if e := d.Sync(d.Root()); e != syscall.EIO {
		t.Fatal(e)
	}
	d.SetFaults(Faults{})
	must(t, d.Sync(d.Root()))
	d.LosePower(0)
	if _, e := d.Lookup(d.Root(), "name"); e != syscall.ENOENT {
		t.Fatalf("the name: %v", e)
	}
}

func TestSpaceIsFreedByRemovals(t *testing.T) {
	d := New()
	n := file(t, d, "12345678")
	size, before := d.Space()
	must(t, d.Open(n, false), d.Remove(d.Root(), "file", false))
	if _, free := d.Space(); free != before {
		t.Errorf("an open file without a name has freed %d bytes", free-before)
	}
	d.Close(n)
	if _, free := d.Space(); free != size {
		t.Errorf("%d of %d bytes are free", free, size)
	}
}

func TestOneSeedLosesTheSame(t *testing.T) {
	lose := func() string {
		d := New()
		n := file(t, d, "00000000")
		for i := range int64(8) {
			must(t, d.Write(n, i, []byte("1")))
		}
		d.LosePower(7)
		text, e := d.Read(n, 0, 8)
		must(t, e)
		return string(text)
	}
	if first, second := lose(), lose(); first != second {
		t.Errorf("%s, then %s", first, second)
	}
}
