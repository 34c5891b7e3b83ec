package bodies

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	markup "golang.org/x/net/html"
)

// Widths in pixels: of a mail, and of its content.
const (
	width      = 600
	inside     = 552
	ghostOpen  = "<!--[if mso]>"
	ghostClose = "<![endif]-->"
)

// blockNames are the elements that Fanfare adds to HTML.
const blockNames = "f-button f-column f-divider f-image f-section f-spacer"

// A section is an open f-section. Columns without a width share the rest of its width.
type section struct {
	columns []int // in pixels
	at      int
}

// expandBlocks replaces the block elements by tables, which old versions of Outlook need.
// Columns stack if the screen is narrow, without a media query, since some readers drop those.
func (b *builder) expandBlocks(f *File, source string) string {
	if !strings.Contains(source, "<f-") {
		return source
	}
	widths := b.columnWidths(source)
	var out strings.Builder
	var open []section
	z := markup.NewTokenizer(strings.NewReader(source))
	for {
		kind := z.Next()
		if kind == markup.ErrorToken {
			return out.String()
		}
		raw := string(z.Raw())
		if kind != markup.StartTagToken && kind != markup.EndTagToken && kind != markup.SelfClosingTagToken {
			out.WriteString(raw)
			continue
		}
		t := z.Token()
		if !strings.HasPrefix(t.Data, "f-") {
			out.WriteString(raw)
			continue
		}
		if !strings.Contains(" "+blockNames+" ", " "+t.Data+" ") {
			b.fail(f.fault(f.find(raw, t.Data), "use one of "+strings.ReplaceAll(blockNames, " ", ", "), "unknown block "+t.Data))
			return source
		}
		if kind == markup.EndTagToken {
			out.WriteString(blockEnd(t.Data, &open))
			continue
		}
		text, lack := b.blockStart(t, &open, &widths)
		if lack != nil {
			b.fail(f.fault(f.find(raw, t.Data), lack.hint, lack.message))
		}
		out.WriteString(text)
	}
}

// columnWidths returns the widths of the columns of each section.
func (b *builder) columnWidths(source string) (all [][]int) {
	z := markup.NewTokenizer(strings.NewReader(source))
	for {
		kind := z.Next()
		if kind == markup.ErrorToken {
			break
		}
		if kind != markup.StartTagToken {
			continue
		}
		switch t := z.Token(); {
		case t.Data == "f-section":
			all = append(all, nil)
		case t.Data == "f-column" && len(all) > 0:
			percent, err := strconv.Atoi(strings.TrimSuffix(attribute(t, "width"), "%"))
			if err != nil || percent < 1 || percent > 100 {
				percent = 0
			}
			all[len(all)-1] = append(all[len(all)-1], percent)
		}
	}
	for _, section := range all {
		left, free := 100, 0
		for _, percent := range section {
			left -= percent
			if percent == 0 {
				free++
			}
		}
		for i, percent := range section {
			if percent == 0 {
				percent = max(left, 0) / free
			}
			section[i] = inside * percent / 100
		}
	}
	return all
}

// A blockError says what is wrong with a block.
type blockError struct{ message, hint string }

// find returns the offset of a start tag in the file; of a tag with Liquid, that of the first
// tag with its name.
func (f *File) find(raw, name string) int {
	if at := strings.Index(f.Text, raw); at >= 0 {
		return at
	}
	return max(0, strings.Index(f.Text, "<"+name))
}

const table = `<table role="presentation" cellpadding="0" cellspacing="0" border="0"`

func (b *builder) blockStart(t markup.Token, open *[]section, widths *[][]int) (string, *blockError) {
	get := func(name string) string { return html.EscapeString(attribute(t, name)) }
	style := attribute(t, "style")
	if style != "" {
		style = ` style="` + html.EscapeString(style) + `"`
	}
	switch t.Data {
	case "f-section":
		s := section{}
		if len(*widths) > 0 {
			s.columns, *widths = (*widths)[0], (*widths)[1:]
		}
		*open = append(*open, s)
		return table + ` width="100%"><tr><td class="f-section"` + style + `>`, nil
	case "f-column":
		if len(*open) == 0 {
			return "", &blockError{"f-column is used outside an f-section", "put the columns into an f-section"}
		}
		s := &(*open)[len(*open)-1]
		wide := inside
		if s.at < len(s.columns) {
			wide = s.columns[s.at]
		}
		before := ghostOpen + `</td><td valign="top" width="` + strconv.Itoa(wide) + `">` + ghostClose
		if s.at == 0 {
			before = ghostOpen + table + ` width="100%"><tr><td valign="top" width="` + strconv.Itoa(wide) + `">` + ghostClose
		}
		s.at++
		return before + fmt.Sprintf(`<div class="f-column" style="max-width: %dpx"><div class="f-inner"%s>`, wide, style), nil
	case "f-button":
		if attribute(t, "href") == "" {
			return "", &blockError{"f-button has no href", "write f-button href=\"...\""}
		}
		return table + ` class="f-button-around"><tr><td class="f-button-cell"` + style + `><a class="f-button" href="` + get("href") + `"` + style + `>`, nil
	case "f-divider":
		return `<hr class="f-divider"` + style + `>`, nil
	case "f-spacer":
		high, err := strconv.Atoi(strings.TrimSuffix(attribute(t, "height"), "px"))
		if err != nil || high < 1 || high > 400 {
			high = 24
		}
		return fmt.Sprintf(`<div style="height: %dpx; line-height: %dpx; font-size: 1px">&nbsp;</div>`, high, high), nil
	}
	for _, a := range t.Attr {
		if a.Key == "alt" {
			wide := ""
			if n, err := strconv.Atoi(strings.TrimSuffix(attribute(t, "width"), "px")); err == nil && n > 0 {
				wide = fmt.Sprintf(` width="%d"`, min(n, width))
				style = fmt.Sprintf(` style="width: 100%%; max-width: %dpx"`, n)
			}
			return `<img class="f-image" src="` + get("src") + `" alt="` + get("alt") + `"` + wide + style + `>`, nil
		}
	}
	return "", &blockError{"f-image has no alt", `describe the image, such as alt="A map of the area"; use alt="" if it is purely decorative`}
}

func blockEnd(name string, open *[]section) string {
	switch name {
	case "f-section":
		end := "</td></tr></table>"
		if n := len(*open); n > 0 {
			if (*open)[n-1].at > 0 {
				end = ghostOpen + end + ghostClose + end
			}
			*open = (*open)[:n-1]
		}
		return end
	case "f-column":
		return "</div></div>"
	case "f-button":
		return "</a></td></tr></table>"
	}
	return ""
}
