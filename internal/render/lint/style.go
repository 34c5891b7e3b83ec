package lint

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// A look is how words look in an element, as far as attributes say.
type look struct {
	colour, background colour
	pixels             float64 // of the letters; below 0 where it is not known
	bold, hidden       bool
}

// plainly is how words look where nobody says.
var plainly = look{colour: black, background: white, pixels: 16}

// headings are larger, and all of them are bold.
var headings = map[string]float64{"h1": 32, "h2": 24, "h3": 18.72, "h4": 16, "h5": 13.28, "h6": 10.72}

// in is how words look in an element within; own tells whether it says something
// of colours itself.
func (k look) in(name string, attributes []html.Attribute) (next look, own bool) {
	next = k
	if size, ok := headings[name]; ok {
		next.pixels, next.bold = size, true
	}
	switch name {
	case "a":
		next.colour = colour{} // the reader's own
	case "b", "strong", "th":
		next.bold = true
	}
	set := func(into *colour, text string) { *into, own = colourOf(text), true }
	for _, a := range attributes {
		switch a.Key {
		case "bgcolor":
			set(&next.background, a.Val)
		case "color":
			set(&next.colour, a.Val)
		case "hidden":
			next.hidden = true
		case "style":
			for declaration := range strings.SplitSeq(a.Val, ";") {
				property, text, _ := strings.Cut(declaration, ":")
				text = strings.ToLower(strings.TrimSpace(strings.ReplaceAll(text, "!important", "")))
				switch strings.ToLower(strings.TrimSpace(property)) {
				case "color":
					set(&next.colour, text)
				case "background-color":
					set(&next.background, text)
				case "background":
					set(&next.background, firstColour(text))
				case "background-image":
					next.background = colour{}
				default:
					next.shape(strings.ToLower(strings.TrimSpace(property)), text, k.pixels)
				}
			}
		}
	}
	return next, own
}

// shape takes what a declaration says that is not of colours.
func (k *look) shape(property, text string, around float64) {
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

// firstColour is the colour in the shorthand of a background; with an image it is
// not known.
func firstColour(text string) string {
	if strings.Contains(text, "url(") || strings.Contains(text, "gradient(") {
		return ""
	}
	if strings.HasPrefix(text, "rgb(") {
		return text
	}
	for word := range strings.FieldsSeq(text) {
		if colourOf(word).known {
			return word
		}
	}
	return ""
}

// pixels reads a size of letters; below 0 where it is none.
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

// number reads one; below 0 where it is none.
func number(text string) float64 {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return -1
	}
	return n
}

// large is what WCAG calls large, which may have less contrast.
func (k look) large() bool { return k.pixels >= 24 || k.bold && k.pixels >= 18.66 }

// unseen reports whether nobody sees words that look so.
func (k look) unseen() bool { return k.hidden || k.pixels >= 0 && k.pixels <= 1 }
