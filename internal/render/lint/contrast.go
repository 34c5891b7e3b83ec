package lint

import (
	"math"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// A color is a color that is written out; known is false if a value decides, or if its notation
// is not supported.
type color struct {
	red, green, blue float64 // 0 to 1
	known            bool
}

var (
	black = color{known: true}
	white = color{1, 1, 1, true}
)

// namedColors are those of HTML 4 and further greys.
var namedColors = map[string]string{
	"black": "000", "silver": "c0c0c0", "gray": "808080", "grey": "808080", "white": "fff", "maroon": "800000", "red": "f00", "purple": "800080",
	"fuchsia": "f0f", "green": "008000", "lime": "0f0", "olive": "808000", "yellow": "ff0", "navy": "000080", "blue": "00f", "teal": "008080", "aqua": "0ff",
	"orange": "ffa500", "lightgray": "d3d3d3", "lightgrey": "d3d3d3", "darkgray": "a9a9a9", "darkgrey": "a9a9a9", "dimgray": "696969", "dimgrey": "696969", "whitesmoke": "f5f5f5",
}

// parseColor parses #rgb, #rrggbb, rgb(r, g, b) and names.
func parseColor(text string) color {
	text = strings.ToLower(strings.TrimSpace(text))
	hex, isHex := strings.CutPrefix(text, "#")
	if name, ok := namedColors[text]; ok {
		hex, isHex = name, true
	}
	if args, ok := strings.CutPrefix(text, "rgb("); ok {
		var c [3]float64
		parts := strings.FieldsFunc(strings.TrimSuffix(args, ")"), func(r rune) bool { return r == ',' || r == ' ' })
		if len(parts) != len(c) {
			return color{}
		}
		for i, part := range parts {
			n, err := strconv.ParseUint(part, 10, 8)
			if err != nil {
				return color{}
			}
			c[i] = float64(n) / 255
		}
		return color{c[0], c[1], c[2], true}
	}
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if !isHex || len(hex) != 6 || err != nil {
		return color{}
	}
	return color{float64(n>>16) / 255, float64(n>>8&255) / 255, float64(n&255) / 255, true}
}

// contrast returns the contrast ratio of two colors (WCAG 2.2), from 1 to 21.
func contrast(a, b color) float64 {
	one, two := a.luminance(), b.luminance()
	return (max(one, two) + 0.05) / (min(one, two) + 0.05)
}

// luminance returns the relative luminance (WCAG 2.2).
func (c color) luminance() float64 {
	linear := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.red) + 0.7152*linear(c.green) + 0.0722*linear(c.blue)
}

// A textStyle is the style of the text in an element, as far as attributes tell.
type textStyle struct {
	color, background color
	pixels            float64 // font size; negative if unknown
	bold, hidden      bool
}

// defaultStyle is the style of text without any attributes.
var defaultStyle = textStyle{color: black, background: white, pixels: 16}

// headings have their own font sizes, and all are bold.
var headings = map[string]float64{"h1": 32, "h2": 24, "h3": 18.72, "h4": 16, "h5": 13.28, "h6": 10.72}

// inside returns the style inside an element; own tells whether the element sets a color.
func (k textStyle) inside(name string, attributes []html.Attribute) (next textStyle, own bool) {
	next = k
	if size, ok := headings[name]; ok {
		next.pixels, next.bold = size, true
	}
	switch name {
	case "a":
		next.color = color{} // set by the reader
	case "b", "strong", "th":
		next.bold = true
	}
	set := func(into *color, text string) { *into, own = parseColor(text), true }
	for _, a := range attributes {
		switch a.Key {
		case "bgcolor":
			set(&next.background, a.Val)
		case "color":
			set(&next.color, a.Val)
		case "hidden":
			next.hidden = true
		case "style":
			for declaration := range strings.SplitSeq(a.Val, ";") {
				property, text, _ := strings.Cut(declaration, ":")
				text = strings.ToLower(strings.TrimSpace(strings.ReplaceAll(text, "!important", "")))
				switch strings.ToLower(strings.TrimSpace(property)) {
				case "color":
					set(&next.color, text)
				case "background-color":
					set(&next.background, text)
				case "background":
					set(&next.background, backgroundColor(text))
				case "background-image":
					next.background = color{}
				default:
					next.applyDeclaration(strings.ToLower(strings.TrimSpace(property)), text, k.pixels)
				}
			}
		}
	}
	return next, own
}

// applyDeclaration applies a declaration that does not concern colors.
func (k *textStyle) applyDeclaration(property, text string, around float64) {
	switch {
	case property == "display" && text == "none", property == "visibility" && text == "hidden", property == "opacity" && number(text) == 0:
		k.hidden = true
	case property == "font-size":
		k.pixels = pixels(text, around)
	case property == "font-weight":
		k.bold = text == "bold" || text == "bolder" || number(text) >= 700
	case property == "font":
		for word := range strings.FieldsSeq(text) {
			size, _, _ := strings.Cut(word, "/")
			if p := pixels(size, around); p >= 0 {
				k.pixels = p
			}
			k.bold = k.bold || word == "bold" || word == "700"
		}
	}
}

// backgroundColor returns the color in a background shorthand, "" with an image.
func backgroundColor(text string) string {
	if strings.Contains(text, "url(") || strings.Contains(text, "gradient(") {
		return ""
	}
	if strings.HasPrefix(text, "rgb(") {
		return text
	}
	for word := range strings.FieldsSeq(text) {
		if parseColor(word).known {
			return word
		}
	}
	return ""
}

// pixels parses a font size; negative if it is none.
func pixels(text string, around float64) float64 {
	for _, unit := range []struct {
		name string
		of   float64
	}{{"px", 1}, {"pt", 4.0 / 3}, {"rem", 16}, {"em", around}, {"%", around / 100}} {
		if size, ok := strings.CutSuffix(text, unit.name); ok && unit.of >= 0 {
			if n := number(size); n >= 0 {
				return n * unit.of
			}
			return -1
		}
	}
	if text == "0" {
		return 0
	}
	return -1
}

// number parses a number; negative if it is none.
func number(text string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return -1
	}
	return n
}

// large reports whether WCAG counts the text as large, which may have less contrast.
func (k textStyle) large() bool { return k.pixels >= 24 || k.bold && k.pixels >= 18.66 }

// isInvisible reports whether readers do not see the text.
func (k textStyle) isInvisible() bool { return k.hidden || k.pixels >= 0 && k.pixels <= 1 }
