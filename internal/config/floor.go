package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A DiskFloor is the minimum free disk space at which intake accepts events: a share of the disk,
// a size, or the smaller of both.
type DiskFloor struct {
	Percent   float64 // of the disk's size; 0 if not set
	SizeBytes int64   // 0 if not set
}

// Bytes returns the floor for a disk of totalBytes.
func (f DiskFloor) Bytes(totalBytes int64) int64 {
	share := int64(float64(totalBytes) * f.Percent / 100)
	switch {
	case f.Percent == 0:
		return f.SizeBytes
	case f.SizeBytes == 0:
		return share
	}
	return min(share, f.SizeBytes)
}

// String returns the floor in the form of the configuration.
func (f DiskFloor) String() string {
	var parts []string
	if f.Percent > 0 {
		parts = append(parts, strconv.FormatFloat(f.Percent, 'f', -1, 64)+"%")
	}
	if f.SizeBytes > 0 || len(parts) == 0 {
		parts = append(parts, formatSize(f.SizeBytes))
	}
	return strings.Join(parts, " or ")
}

// UnmarshalText parses a share such as 5%, a size such as 500MB (units of 1000) or 1GiB (units of
// 1024), or both joined by "or".
func (f *DiskFloor) UnmarshalText(text []byte) error {
	var parsed DiskFloor
	for part := range strings.SplitSeq(string(text), " or ") {
		part = strings.TrimSpace(part)
		if share, ok := strings.CutSuffix(part, "%"); ok {
			p, err := strconv.ParseFloat(strings.TrimSpace(share), 64)
			if err != nil || p < 0 || p >= 100 || math.IsNaN(p) {
				return fmt.Errorf("%q is not a percentage of at least 0%% and less than 100%%", part)
			}
			parsed.Percent = p
			continue
		}
		n, err := ParseSize(part)
		if err != nil {
			return err
		}
		parsed.SizeBytes = n
	}
	*f = parsed
	return nil
}

// A Size is a number of bytes.
type Size int64

// String returns the size in the form of the configuration.
func (s Size) String() string { return formatSize(int64(s)) }

// UnmarshalText parses a size like ParseSize.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := ParseSize(strings.TrimSpace(string(text)))
	*s = Size(n)
	return err
}

// sizeUnits is searched in this order, because every unit ends in B.
var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// ParseSize parses a number of bytes such as 500MB (units of 1000) or 1GiB (units of 1024).
func ParseSize(s string) (int64, error) {
	for _, u := range sizeUnits {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || n < 0 || n*u.bytes >= 1<<62 {
			break
		}
		return int64(n * u.bytes), nil
	}
	return 0, fmt.Errorf("%q is not a size such as 500MB or 1GB", s)
}

func formatSize(n int64) string {
	for i := len(sizeUnits) - 3; i >= 0; i-- { // TB down to KiB
		if u := int64(sizeUnits[i].bytes); n >= u && n%u == 0 {
			return strconv.FormatInt(n/u, 10) + sizeUnits[i].name
		}
	}
	return strconv.FormatInt(n, 10)
}
