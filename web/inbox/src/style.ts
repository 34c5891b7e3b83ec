/** The style of the element. Pages change it through the custom properties of :host, and through parts. */
export const style = `
:host {
  display: block; block-size: 36rem; max-block-size: 100dvh; min-inline-size: 0; container-type: inline-size; text-align: start;
  --_text: var(--fanfare-text, light-dark(#1b2028, #e9ebef)); --_muted: var(--fanfare-muted, light-dark(#596273, #a3abb8));
  --_background: var(--fanfare-background, light-dark(#fff, #15181e)); --_hover: var(--fanfare-hover, light-dark(#f4f6f9, #1e232b));
  --_selected: var(--fanfare-selected, light-dark(#ebf1fe, #1f2b45)); --_border: var(--fanfare-border, light-dark(#e2e6ec, #2c323d));
  --_accent: var(--fanfare-accent, light-dark(#2158d8, #8fb4ff)); --_on-accent: var(--fanfare-on-accent, light-dark(#fff, #0d1a33));
  --_warning: var(--fanfare-warning, light-dark(#fff6e0, #3a2f14)); --_radius: var(--fanfare-radius, 12px);
}
:host([hidden]) { display: none }
:host([theme=light]) { color-scheme: light }
:host([theme=dark]) { color-scheme: dark }
:host([theme=auto]) { color-scheme: light dark }
* { box-sizing: border-box }
[hidden] { display: none !important }
.panel {
  position: relative; display: flex; flex-direction: column; block-size: 100%; overflow: hidden; color: var(--_text); background: var(--_background);
  border: 1px solid var(--_border); border-radius: var(--_radius); font: 400 .9375rem/1.45 var(--fanfare-font, system-ui, sans-serif);
}
h2, h3, p, ul, figure { margin: 0; padding: 0 }
ul { list-style: none }
button { font: inherit; color: inherit; background: none; border: 0; padding: 0; margin: 0; cursor: pointer; text-align: inherit; touch-action: manipulation }
button:disabled { opacity: .5; cursor: default }
:focus-visible { outline: 2px solid var(--_accent); outline-offset: -2px }
.hidden { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
header { display: flex; align-items: center; gap: .5rem; padding: .625rem .75rem .625rem 1rem; padding-inline: 1rem .75rem; border-block-end: 1px solid var(--_border); min-block-size: 3.25rem }
.title { flex: 1; min-inline-size: 0; display: flex; align-items: center; gap: .5rem }
h2 { font-size: 1.0625rem; font-weight: 650; line-height: 1.3; overflow-wrap: anywhere }
.badge { min-inline-size: 1.375rem; padding: 0 .4375rem; border-radius: 1rem; font-size: .75rem; font-weight: 650; line-height: 1.375rem; text-align: center; color: var(--_on-accent); background: var(--_accent); font-variant-numeric: tabular-nums }
.button { min-block-size: 2rem; padding: .25rem .625rem; border-radius: calc(var(--_radius) * .6); font-size: .875rem; font-weight: 550; color: var(--_accent) }
.icon { display: inline-grid; place-items: center; inline-size: 2.25rem; block-size: 2.25rem; flex: none; border-radius: calc(var(--_radius) * .6); color: var(--_muted) }
.icon svg { inline-size: 1.25rem; block-size: 1.25rem; fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linecap: round; stroke-linejoin: round }
:dir(rtl) .back svg { transform: scaleX(-1) }
@media (hover: hover) { .button:hover:enabled, .icon:hover { background: var(--_hover) } .icon:hover { color: var(--_text) } }
.notice { display: flex; align-items: center; gap: .5rem; padding: .5rem 1rem; background: var(--_warning); border-block-end: 1px solid var(--_border); font-size: .875rem }
.notice p { flex: 1; min-inline-size: 0 }
.body { flex: 1; min-block-size: 0; display: flex }
.pane { flex: 1; min-inline-size: 0; overflow-y: auto; overscroll-behavior: contain }
.item { position: relative; border-block-end: 1px solid var(--_border) }
.row { display: grid; grid-template-columns: minmax(0, 1fr) auto; column-gap: .75rem; inline-size: 100%; padding-block: .75rem; padding-inline: 1.875rem 1rem }
.item.open .row { background: var(--_selected) }
@media (hover: hover) { .item:not(.open) .row:hover { background: var(--_hover) } }
.dot { position: absolute; inset-block-start: 1.1875rem; inset-inline-start: .75rem; inline-size: .5rem; block-size: .5rem; border-radius: 50%; background: var(--_accent); border: 1px solid transparent }
.item:not(.unread) .dot { display: none }
.sender, .subject, .preview { min-inline-size: 0; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.sender { grid-area: 1/1; font-size: .8125rem; color: var(--_muted) }
.time { grid-area: 1/2; font-size: .8125rem; color: var(--_muted); white-space: nowrap; font-variant-numeric: tabular-nums }
.subject { grid-area: 2/1/3/3 }
.unread .subject { font-weight: 650 }
.unread .sender { color: var(--_text); font-weight: 550 }
.preview { grid-area: 3/1/4/3; color: var(--_muted); font-size: .875rem }
.delete { position: absolute; inset-block-end: .5rem; inset-inline-end: .5rem; opacity: 0; background: var(--_hover) }
.item:hover .delete, .item:focus-within .delete { opacity: 1 }
.item:hover .preview, .item:focus-within .preview, .item:hover .subject, .item:focus-within .subject { padding-inline-end: 2rem }
@media (hover: none) { .delete:not(:focus-visible) { opacity: 0 !important; pointer-events: none } }
.more { display: block; margin: .75rem auto }
.note { padding: 3rem 1.5rem; color: var(--_muted); text-align: center; overflow-wrap: anywhere }
article { flex: 1; min-inline-size: 0; display: flex; flex-direction: column; overflow-y: auto }
.toolbar { display: flex; align-items: center; gap: .25rem; padding: .375rem .5rem; border-block-end: 1px solid var(--_border) }
.spacer { flex: 1 }
.head { padding: 1rem 1.25rem .75rem }
h3 { font-size: 1.1875rem; font-weight: 650; line-height: 1.35; overflow-wrap: anywhere; max-block-size: 8.2em; overflow-y: auto; border-radius: 4px }
h3:focus-visible { outline-offset: 2px }
.meta { display: flex; flex-wrap: wrap; gap: 0 .5rem; margin-block-start: .25rem; color: var(--_muted); font-size: .875rem; overflow-wrap: anywhere }
.meta > * { min-inline-size: 0 }
.text { padding: .25rem 1.25rem 1.5rem; white-space: pre-wrap; overflow-wrap: anywhere; max-inline-size: 70ch; line-height: 1.6 }
.text a { color: var(--_accent) }
.bar { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem .75rem; margin: 0 1rem .75rem; padding: .5rem .75rem; border-radius: calc(var(--_radius) * .6); background: var(--_hover); color: var(--_muted); font-size: .8125rem }
.bar p { flex: 1 1 12rem }
iframe { flex: 1 0 18rem; inline-size: 100%; border: 0; border-block-start: 1px solid var(--_border); background: #fff; color-scheme: light }
.attachments { padding: .75rem 1.25rem; border-block-start: 1px solid var(--_border) }
.attachments ul { display: flex; flex-wrap: wrap; gap: .5rem }
.attachments button { max-inline-size: 100%; border: 1px solid var(--_border); overflow-wrap: anywhere }
.toast { position: absolute; inset-block-end: .75rem; inset-inline: .75rem; display: flex; justify-content: center; pointer-events: none }
.toast div { display: flex; align-items: center; gap: .5rem; padding: .375rem .5rem; padding-inline-start: 1rem; border-radius: var(--_radius); background: light-dark(#232a35, #e9ebef); color: light-dark(#fff, #1b2028); box-shadow: 0 6px 24px rgb(0 0 0/.22); pointer-events: auto; font-size: .875rem }
.toast .button { color: light-dark(#a9c5ff, #1d4fc4) }
.toast .button:hover:enabled { background: light-dark(#36404f, #d5d9e0) }
.panel:not(.reading) article { display: none }
.reading .pane { display: none }
@container (min-width: 45rem) {
  .pane, .reading .pane { display: block; flex: 0 0 min(24rem, 42%); border-inline-end: 1px solid var(--_border) }
  .panel:not(.reading) .choose { display: grid }
}
.choose { display: none; flex: 1; place-content: center }
@container (max-width: 22rem) { header { flex-wrap: wrap } }
@media (prefers-reduced-motion: no-preference) { .delete { transition: opacity .12s } }
@media (forced-colors: active) { .dot { background: LinkText } .badge { border: 1px solid } .item.open .row { outline: 2px solid Highlight; outline-offset: -2px } }
`;
