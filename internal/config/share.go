package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A Share is a share of the server's processor time, from 0 to 0.5, or unlimited.
type Share float64

// unlimited is the text of a share without limit.
const unlimited = "unlimited"

// maxShare is the largest share that is not unlimited.
const maxShare = 0.5

// IsUnlimited reports whether the share has no limit.
func (s Share) IsUnlimited() bool { return math.IsInf(float64(s), 1) }

// String returns the share in the form of the configuration.
func (s Share) String() string {
	if s.IsUnlimited() {
		return unlimited
	}
	return strconv.FormatFloat(float64(s)*100, 'g', 6, 64) + "%"
}

// UnmarshalText parses a share such as 3%, or unlimited.
func (s *Share) UnmarshalText(text []byte) error {
	given := strings.TrimSpace(string(text))
	if given == unlimited {
		*s = Share(math.Inf(1))
		return nil
	}
	number, isShare := strings.CutSuffix(given, "%")
	percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !isShare || err != nil || !(percent >= 0 && percent <= 100*maxShare) {
		return fmt.Errorf("%q is neither a percentage from 0%% to 50%% nor the word \"unlimited\"", given)
	}
	*s = Share(percent / 100)
	return nil
}
