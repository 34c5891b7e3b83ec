package pages

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// defaultColor is used by services without a color.
const defaultColor = "#1d4f91"

// minContrast is the contrast that WCAG 2.2 requires of text (1.4.3, level AA).
const minContrast = 4.5

// brandStyle sets the color of a service, and black or white for the text on it, whichever has
// more contrast: one of them always has minContrast.
func brandStyle(color string) string {
	l, err := luminance(color)
	if color == "" || err != nil {
		color = defaultColor
		l, _ = luminance(color)
	}
	on := "#ffffff"
	if contrast(l, 1) < minContrast {
		on = "#000000"
	}
	return fmt.Sprintf(":root{--brand:%s;--on-brand:%s}\n", color, on)
}

// contrast returns the contrast ratio of WCAG 2.2, from 1 to 21.
func contrast(a, b float64) float64 {
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

// luminance returns the relative luminance of WCAG 2.2.
func luminance(s string) (float64, error) {
	if len(s) != 7 || s[0] != '#' {
		return 0, errors.New("write it as #rrggbb, such as #005ea5")
	}
	n, err := strconv.ParseUint(s[1:], 16, 32)
	if err != nil {
		return 0, errors.New("write it as #rrggbb, such as #005ea5")
	}
	part := func(shift int) float64 {
		c := float64(n>>shift&0xff) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*part(16) + 0.7152*part(8) + 0.0722*part(0), nil
}
