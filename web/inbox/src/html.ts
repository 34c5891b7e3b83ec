/**
 * HTML of senders. Four things protect the page from it, and each suffices alone against scripts: the elements and attributes that this file
 * keeps, the sandbox of the frame, its origin, which is not that of the page, and its content security policy.
 */

const kept = new Set((
  "a abbr address article aside b bdi bdo big blockquote body br caption center cite code col colgroup dd del details dfn div dl dt em figcaption figure font " +
  "footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark nav ol p pre q rp rt ruby s samp section small span strike strong style sub summary sup table " +
  "tbody td tfoot th thead time tr tt u ul var wbr"
).split(" "));

// Elements that are removed with what is in them. Of all others that are not kept, the contents stay.
const removed = new Set("applet audio base canvas embed frame frameset head iframe link math meta noembed noframes noscript object param script select source svg template textarea title track video xmp plaintext".split(" "));

const attributes = new Set((
  "abbr align alt background bgcolor border cellpadding cellspacing cite class clear color cols colspan datetime dir face headers height hspace id lang noshade nowrap open " +
  "reversed role rowspan rules scope size span src start style summary title type valign value vspace width"
).split(" "));

const links = /^(?:https?:|mailto:|tel:)/i;
const remote = /^(?:https?:)?\/\//i;

export interface Sanitized {
  html: string;
  /** Whether something of another site is left out, or would be loaded. */
  hasRemote: boolean;
}

/**
 * Returns the HTML without anything that runs, sends, or leads away. images are data URLs by the Content-Id of their part. Images of other
 * sites stay only with allowRemote.
 */
export function sanitize(html: string, images: ReadonlyMap<string, string>, allowRemote: boolean): Sanitized {
  // A document of DOMParser has no browsing context: it loads nothing and runs nothing.
  const source = new DOMParser().parseFromString(html, "text/html");
  let hasRemote = false;

  // Styles of the head come first, as the sender meant them.
  for (const style of [...source.head.querySelectorAll("style")].reverse()) source.body.prepend(style);

  const clean = (element: Element): void => {
    for (const child of [...element.childNodes]) {
      if (child.nodeType === Node.TEXT_NODE) continue;
      const name = child.nodeName.toLowerCase();
      if (!(child instanceof Element) || removed.has(name)) child.remove();
      else if (kept.has(name)) {
        cleanAttributes(child, name);
        // A browser would draw a broken image before the text.
        if (name === "img" && !child.hasAttribute("src")) child.replaceWith(child.getAttribute("alt") ?? "");
        else if (name === "style") hasRemote ||= /url\(|@import|image-set\(/i.test(child.textContent ?? "");
        else clean(child);
      } else {
        clean(child);
        child.replaceWith(...child.childNodes);
      }
    }
  };

  const cleanAttributes = (element: Element, name: string): void => {
    for (const { name: attribute, value } of [...element.attributes]) {
      const trimmed = value.trim();
      if (attribute === "href" && name === "a" && links.test(trimmed)) continue;
      if (!attributes.has(attribute)) {
        element.removeAttribute(attribute);
      } else if (attribute === "src" || attribute === "background") {
        const inline = /^cid:(.*)$/i.exec(trimmed);
        const data = inline ? images.get(decode(inline[1]!)) : undefined;
        if (data) element.setAttribute(attribute, data);
        else if (remote.test(trimmed)) {
          hasRemote = true;
          if (!allowRemote) element.removeAttribute(attribute);
        } else if (!/^data:image\/(?:png|jpeg|gif|webp|avif);/i.test(trimmed)) element.removeAttribute(attribute);
      } else if (attribute === "style") {
        hasRemote ||= /url\(|image-set\(/i.test(value);
      }
    }
    // A link without a target would navigate the frame.
    if (element.hasAttribute("href")) {
      element.setAttribute("target", "_blank");
      element.setAttribute("rel", "noopener noreferrer nofollow");
    }
  };

  // The direction and the language of the document are on the element that goes.
  for (const name of ["dir", "lang"]) {
    const value = source.documentElement.getAttribute(name);
    if (value && !source.body.hasAttribute(name)) source.body.setAttribute(name, value);
  }
  cleanAttributes(source.body, "body");
  clean(source.body);
  return { html: source.body.outerHTML, hasRemote };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the document of the frame. Its policy loads nothing but images, and those of other sites only with allowRemote. */
export function frameDocument(body: string, allowRemote: boolean): string {
  const policy = `default-src 'none'; style-src 'unsafe-inline'; img-src data:${allowRemote ? " https: http:" : ""}; form-action 'none'`;
  return `<!DOCTYPE html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">` +
    `<meta name="referrer" content="no-referrer"><meta name="viewport" content="width=device-width"><style>html{color-scheme:light;background:#fff}` +
    `body{margin:16px;font:16px/1.5 system-ui,sans-serif;color:#1f2328;overflow-wrap:anywhere}img,table{max-width:100%}img{height:auto}pre{white-space:pre-wrap}</style></head>${body}</html>`;
}

const address = /\bhttps?:\/\/[^\s<>"']*[^\s<>"'.,;:!?)\]}]/gi;

/** Returns text as nodes, in which the addresses of pages are links. Nothing in it is HTML. */
export function textNodes(text: string): Node[] {
  const nodes: Node[] = [];
  let end = 0;
  for (const match of text.matchAll(address)) {
    nodes.push(document.createTextNode(text.slice(end, match.index)));
    const link = document.createElement("a");
    link.href = match[0];
    link.target = "_blank";
    link.rel = "noopener noreferrer nofollow";
    link.textContent = match[0];
    nodes.push(link);
    end = match.index + match[0].length;
  }
  nodes.push(document.createTextNode(text.slice(end)));
  return nodes;
}
