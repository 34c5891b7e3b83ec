package file

import "testing"

func TestSyncfsIsUsedSinceLinux58(t *testing.T) {
	for release, want := range map[string]bool{
		"5.7.19": false, "5.8.0": true, "5.10.0-28-amd64": true, "4.19.0": false, "6.1": true, "10.0.1": true, "": false, "unknown": false,
	} {
		if got := sinceLinux58(release); got != want {
			t.Errorf("%q: %v, want %v", release, got, want)
		}
	}
	if canSyncFileSystem("/proc") {
		t.Error("a file system that is on no disk is relied on")
	}
}
