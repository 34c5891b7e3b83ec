package lint

import (
	"math"
	"strconv"
	"strings"
)

// A colour is one that is written out; known is false where a value decides, or
// where it is written in a way that is not read here.
type colour struct {
	red, green, blue float64 // 0 to 1
	known            bool
}

var (
	black = colour{known: true}
	white = colour{1, 1, 1, true}
)

// named are those of HTML 4 and the other greys.
var named = map[string]string{
	"black": "000", "silver": "c0c0c0", "gray": "808080", "grey": "808080", "white": "fff", "maroon": "800000", "red": "f00", "purple": "800080",
	"fuchsia": "f0f", "green": "008000", "lime": "0f0", "olive": "808000", "yellow": "ff0", "navy": "000080", "blue": "00f", "teal": "008080", "aqua": "0ff",
	"orange": "ffa500", "lightgray": "d3d3d3", "lightgrey": "d3d3d3", "darkgray": "a9a9a9", "darkgrey": "a9a9a9", "dimgray": "696969", "dimgrey": "696969", "whitesmoke": "f5f5f5",
}

// colourOf reads #rgb, #rrggbb, rgb(r, g, b) and names.
func colourOf(text string) colour {
	text = strings.ToLower(strings.TrimSpace(text))
	hex, isHex := strings.CutPrefix(text, "#")
	if name, ok := named[text]; ok {
		hex, isHex = name, true
	}
	if args, ok := strings.CutPrefix(text, "rgb("); ok {
		var c [3]float64
		parts := strings.FieldsFunc(strings.TrimSuffix(args, ")"), func(r rune) bool { return r == ',' || r == ' ' })
		if len(parts) != len(c) {
			return colour{}
		}
		for i, part := range parts {
			n, err := strconv.ParseUint(part, 10, 8)
			if err != nil {
				return colour{}
			}
			c[i] = float64(n) / 255
		}
		return colour{c[0], c[1], c[2], true}
	}
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if !isHex || len(hex) != 6 || err != nil {
		return colour{}
	}
	return colour{float64(n>>16) / 255, float64(n>>8&255) / 255, float64(n&255) / 255, true}
}

// contrast is the ratio of WCAG 2.2 between two colours, 1 to 21.
func contrast(a, b colour) float64 {
	one, two := a.luminance(), b.luminance()
	return (max(one, two) + 0.05) / (min(one, two) + 0.05)
}

// luminance is that of WCAG 2.2, relative to white.
func (c colour) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.red) + 0.7152*linear(c.green) + 0.0722*linear(c.blue)
}
