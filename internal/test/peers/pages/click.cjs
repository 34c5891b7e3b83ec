// Clicks through the pages that recipients see, as they would, and prints what it saw
// as JSON. Usage: node click.cjs with a description on standard input.
const fs = require('node:fs')
const path = require('node:path')

const want = JSON.parse(fs.readFileSync(0, 'utf8'))
const puppeteer = require(path.join(want.modules, 'puppeteer-core'))
const axe = fs.readFileSync(path.join(want.modules, 'axe-core', 'axe.min.js'), 'utf8')
const seen = { violations: [], foreign: [], wide: [], steps: [], checked: 0, pictures: 0, errors: [] }
const patience = 120000

async function until (what, ask) {
  for (const end = Date.now() + patience; Date.now() < end;) {
    const found = await ask()
    if (found) return found
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(what + ' did not come about')
}

// link waits for a mail to somebody with a link to a page, and returns its path.
function link (to, page) {
  return until(`a mail to ${to} with a link to /${page}/`, () => {
    for (const name of fs.readdirSync(want.outbox, { recursive: true })) {
      const file = path.join(want.outbox, name)
      if (!fs.statSync(file).isFile()) continue
      const mail = fs.readFileSync(file, 'utf8').replace(/=\r?\n/g, '').replace(/=3D/g, '=')
      const found = mail.match(new RegExp('https://news\\.example\\.org(/' + page + '/[A-Za-z0-9_-]+)'))
      if (mail.includes(to) && found) return found[1]
    }
  })
}

async function api (method, where, body) {
  const answer = await fetch(want.url + where, { method, body: body && JSON.stringify(body), headers: { Authorization: 'Bearer ' + want.key, 'Content-Type': 'application/json', 'X-Fanfare-Service': 'news' } })
  if (!answer.ok) throw new Error(`${method} ${where}: ${answer.status} ${await answer.text()}`)
  return answer.json()
}

async function look (page, name, scripts) {
  seen.steps.push((scripts ? '' : 'without scripts: ') + name + ': ' + await page.title())
  if (!scripts) return
  for (const scheme of ['light', 'dark']) {
    for (const [size, width] of [['narrow', 320], ['wide', 1280]]) {
      await page.setViewport({ width, height: 900 })
      await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: scheme }])
      const room = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth])
      if (room[0] > room[1]) seen.wide.push(`${name} ${size}: ${room[0]} on ${room[1]}`)
      await page.screenshot({ path: path.join(want.pictures, `page-${name}-${size}-${scheme}.png`), fullPage: true })
      seen.pictures++
      await page.evaluate(axe)
      const found = await page.evaluate(() => window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }))
      seen.checked++
      for (const v of found.violations) seen.violations.push(`${name} ${size} ${scheme}: ${v.id}: ${v.help}: ${v.nodes.map(n => n.html).join(' ')}`)
    }
  }
}

async function press (page, selector) {
  await Promise.all([page.waitForNavigation({ timeout: patience }), page.click(selector)])
}

async function title (page, part) {
  const is = await page.title()
  if (!is.includes(part)) throw new Error(`the page is ${is}, not ${part}`)
}

async function walk (browser, to, scripts) {
  const page = await browser.newPage()
  page.setDefaultTimeout(patience)
  await page.setJavaScriptEnabled(scripts)
  page.on('pageerror', e => seen.errors.push(String(e)))
  page.on('console', m => { if (m.type() === 'error' && !m.text().includes('404')) seen.errors.push(m.text()) })
  page.on('request', r => { if (!r.url().startsWith(want.url + '/') && !r.url().startsWith('data:')) seen.foreign.push(r.url()) })

  await page.goto(want.url + '/s/news/storm')
  const opened = Date.now()
  await look(page, 'signup', scripts)
  await page.type('#to', to)
  await page.type('#p-level-from', '3')
  await page.select('#cadence', 'immediate')
  await page.click('input[name=agree]')
  if (scripts) {
    await page.waitForFunction(() => document.forms[0].elements.proof.value !== '')
  } else { // people take their time, and the form asks for that
    await until('the form is old enough', () => Date.now() > opened + 4000)
  }
  await press(page, 'button[type=submit]')
  await title(page, 'Check your email')
  await look(page, 'sent', scripts)

  await page.goto(want.url + await link(to, 'c'))
  await title(page, 'Confirm')
  await look(page, 'confirm', scripts)
  await press(page, 'button[type=submit]')
  await title(page, 'You are subscribed')
  await look(page, 'confirmed', scripts)

  await press(page, 'main a')
  await title(page, 'Your preferences')
  await look(page, 'preferences', scripts)
  const cadence = await page.$eval('select[name^=cadence-]', e => e.id)
  await page.select('#' + cadence, 'daily 08:00')
  await press(page, 'button[type=submit]')
  await page.waitForSelector('.done')
  await look(page, 'saved', scripts)
  await page.select('#' + cadence, 'immediate')
  await press(page, 'button[type=submit]')

  await api('POST', '/v1/subscriptions', { topic: 'story', channel: 'email', to })
  await api('POST', '/v1/topics/storm/events', { title: 'wind', level: 5 })
  await page.goto(want.url + await link(to, 'u'))
  await title(page, 'Unsubscribe?')
  await look(page, 'unsubscribe', scripts)
  await page.select('#why', 'often')
  await press(page, 'button[name=all]')
  await title(page, 'You are unsubscribed')
  await look(page, 'left', scripts)
  const count = async state => (await api('GET', '/v1/subscriptions?state=' + state + '&subscriber=' + encodeURIComponent(to))).subscriptions.length
  if (await count('active') !== 0) throw new Error('something goes on')
  await press(page, 'button[type=submit]')
  await title(page, 'You are subscribed again')
  await look(page, 'undone', scripts)
  if (await count('active') !== 2) throw new Error('not everything is back')
  await page.goto(want.url + '/u/none')
  await look(page, 'broken', scripts)
  await page.close()
}

(async () => {
  const browser = await puppeteer.launch({ executablePath: want.browser, headless: true, args: ['--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'] })
  try {
    await walk(browser, 'ada@example.org', true)
    await walk(browser, 'bob@example.org', false)
  } finally {
    await browser.close()
  }
})().catch(e => seen.errors.push(String(e.stack || e))).finally(() => console.log(JSON.stringify(seen)))
