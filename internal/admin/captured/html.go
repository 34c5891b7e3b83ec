package captured

import (
	"context"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/mimetree"
)

// images are the types of images that HTML shows.
var images = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "image/svg+xml"}

// HTML returns the HTML of a message, in UTF-8, with the images in the message as data. Scripts, and elements that load or send something, are removed; the
// policy with which the API sends the result stops whatever remains.
func (m *Messages) HTML(ctx context.Context, service, id string) (page []byte, err error) {
	err = m.parse(ctx, service, id, func(one *message) error {
		if one.html == nil {
			return &fanfare.Error{Code: fanfare.NotFound, Message: "the message has no HTML", Hint: "get its text: GET /v1/captured/{id}"}
		}
		if size := one.html.Body.Len(); size > maxHTMLBytes {
			return tooLarge("the HTML", size, maxHTMLBytes)
		}
		page = rewritten(mimetree.Text(one.html, one.data), one.images())
		return nil
	})
	return page, err
}

// HTMLOf returns the HTML of an email that is not in a folder, as HTML does; nil if it has none.
func HTMLOf(email []byte) []byte {
	one := newMessage(wire.CapturedMessage{Kind: mailKind}, email)
	if one.html == nil {
		return nil
	}
	return rewritten(mimetree.Text(one.html, one.data), one.images())
}

// images returns a function that returns the image with a content id as a URL, "" if there is none or it is too large.
func (m *message) images() func(id string) string {
	byID := map[string]*mimetree.Part{}
	for _, p := range m.attachments {
		if id := contentID(p); id != "" && slices.Contains(images, typeOf(p)) && byID[id] == nil {
			byID[id] = p
		}
	}
	left := int64(maxInlineBytes)
	return func(id string) string {
		if unescaped, err := url.PathUnescape(id); err == nil {
			id = unescaped
		}
		p := byID[id]
		if p == nil || p.Body.Len() > left {
			return ""
		}
		content, err := mimetree.Decode(p, m.data)
		if err != nil {
			return ""
		}
		left -= p.Body.Len()
		return "data:" + typeOf(p) + ";base64," + base64.StdEncoding.EncodeToString(content)
	}
}

// dropped are elements that are removed with their content, and loading those that are removed without it.
var (
	dropped = []string{"script", "iframe", "object", "applet", "noscript", "template", "frameset", "noembed", "noframes", "plaintext", "xmp", "svg", "math"}
	loading = []string{"base", "embed", "link", "meta", "frame", "form", "input", "button", "audio", "video", "source", "track", "portal"}
)

// rewritten returns HTML without scripts, and with its images as data.
func rewritten(text string, image func(id string) string) []byte {
	z := html.NewTokenizer(strings.NewReader(text))
	var out strings.Builder
	until := "" // the dropped element whose end is searched
	for {
		kind := z.Next()
		if kind == html.ErrorToken {
			return []byte(out.String())
		}
		if kind == html.TextToken {
			if until == "" {
				out.Write(z.Raw())
			}
			continue
		}
		t := z.Token()
		switch {
		case until != "":
			if kind == html.EndTagToken && t.Data == until {
				until = ""
			}
		case kind == html.CommentToken: // conditional comments contain markup
		case kind != html.EndTagToken && slices.Contains(dropped, t.Data): // browsers ignore the slash of <script/>
			until = t.Data
		case slices.Contains(dropped, t.Data), slices.Contains(loading, t.Data):
		default:
			t.Attr = slices.DeleteFunc(t.Attr, func(a html.Attribute) bool { return !isHarmless(a) })
			for i, a := range t.Attr {
				if id, ok := cutFold(a.Val, "cid:"); ok && (a.Key == "src" || a.Key == "background") {
					t.Attr[i].Val = image(id)
				}
			}
			out.WriteString(t.String())
		}
	}
}

// isHarmless reports whether an attribute runs no script.
func isHarmless(a html.Attribute) bool {
	if strings.HasPrefix(a.Key, "on") || slices.Contains([]string{"srcdoc", "formaction", "action", "ping", "autofocus"}, a.Key) {
		return false
	}
	if a.Key != "href" && a.Key != "src" && a.Key != "xlink:href" && !strings.HasSuffix(a.Key, "href") {
		return true
	}
	return !isScript(a.Val)
}

// isScript reports whether a URL runs a script. Browsers ignore white space and control characters in the scheme.
func isScript(text string) bool {
	scheme, _, _ := strings.Cut(strings.Map(func(r rune) rune {
		if r <= ' ' {
			return -1
		}
		return r
	}, text), ":")
	return strings.EqualFold(scheme, "javascript") || strings.EqualFold(scheme, "vbscript")
}

func cutFold(text, prefix string) (rest string, ok bool) {
	text = strings.TrimSpace(text)
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	return text[len(prefix):], true
}

// linksIn returns the links in HTML.
func linksIn(text string) (links []wire.CapturedLink) {
	z := html.NewTokenizer(strings.NewReader(text))
	open := -1 // number of the link whose text is read
	for {
		switch z.Next() {
		case html.ErrorToken:
			for i := range links {
				links[i].Text = clipped(strings.Join(strings.Fields(links[i].Text), " "), 200)
			}
			return links
		case html.TextToken:
			if open >= 0 && len(links[open].Text) < maxValueBytes {
				links[open].Text += clipped(string(z.Text()), maxValueBytes)
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			switch {
			case t.Data == "a" || t.Data == "area":
				open = -1
				if href := attribute(&t, "href"); href != "" && len(links) < maxListed {
					links = append(links, wire.CapturedLink{URL: clipped(href, maxValueBytes)})
					open = len(links) - 1
				}
			case t.Data == "img" && open >= 0 && len(links[open].Text) < maxValueBytes:
				links[open].Text += " " + clipped(attribute(&t, "alt"), maxValueBytes)
			}
		case html.EndTagToken:
			if name, _ := z.TagName(); string(name) == "a" {
				open = -1
			}
		}
	}
}

// attribute returns the value of an attribute, or "".
func attribute(t *html.Token, name string) string {
	for _, a := range t.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
