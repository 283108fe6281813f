"""What every page must pass, whatever it shows: reachable by keyboard, readable, nothing cut.

The checks are those that Lighthouse and axe make, run in the page itself.
"""

from __future__ import annotations

from browser import Browser

CONTROLS = "a[href], button:not([disabled]), input, select, summary, [tabindex]"

_COLLECT = f"""
const controls = [...document.querySelectorAll({CONTROLS!r})].filter((e) => e.checkVisibility());
window.unreached = new Set(controls);
document.addEventListener('focusin', (event) => window.unreached.delete(event.target));
document.activeElement.blur();
return controls.length;
"""

_WHERE = """
const e = document.activeElement;
const group = e.closest('.states');
return [e === document.body, group ? [...document.querySelectorAll('.states')]
  .indexOf(group) : -1];
"""


def unreachable_controls(browser: Browser) -> list[str]:
    """Controls that Tab and the arrow keys never come to, as their HTML."""
    from selenium.webdriver.common.keys import Keys

    count = browser.run(_COLLECT)
    walked: set[int] = set()
    for _ in range(count + 5):
        browser.press(Keys.TAB)
        left, group = browser.run(_WHERE)
        if left:
            break
        if group >= 0 and group not in walked:
            walked.add(group)
            browser.press(Keys.HOME)
            size = browser.run(
                "return document.querySelectorAll('.states')[arguments[0]]"
                ".querySelectorAll('button').length",
                group,
            )
            for _ in range(size - 1):
                browser.press(Keys.ARROW_DOWN)
    return browser.run("return [...window.unreached].map((e) => e.outerHTML.slice(0, 120))")


_CONTRAST = """
const rgb = (text) => {
  const n = text.match(/[\\d.e-]+/g).map(Number);
  return text.startsWith('color(') ? [...n.slice(0, 3).map((v) => 255 * v), n[3] ?? 1]
    : [n[0], n[1], n[2], n[3] ?? 1];
};
const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => a * v + (1 - a) * under[i]);
const paper = (element) => {
  if (!element) return [255, 255, 255];
  const own = rgb(getComputedStyle(element).backgroundColor);
  return own[3] >= 1 ? own.slice(0, 3) : over(own, paper(element.parentElement));
};
const light = (colour) => {
  const [r, g, b] = colour.map((v) => {
    const s = v / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
  const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
};
const found = [];
const judge = (element, style, text) => {
  const under = paper(element);
  const inside = element.closest('svg');
  const ink = over(rgb(inside ? style.fill : style.color), under);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const ratio = contrast(ink, under);
  if (ratio < (large ? 3 : 4.5)) found.push(`${ratio.toFixed(2)}: ${text.trim().slice(0, 40)} `
    + `(${element.tagName}.${element.getAttribute('class')})`);
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const element = walker.currentNode.parentElement;
  const text = walker.currentNode.textContent;
  if (!text.trim() || !element.checkVisibility()) continue;
  if (element.closest('script, style, title, [disabled]')) continue;
  judge(element, getComputedStyle(element), text);
}
for (const field of document.querySelectorAll('input[placeholder]')) {
  if (!field.checkVisibility()) continue;
  judge(field, getComputedStyle(field, '::placeholder'), field.placeholder);
}
return [...new Set(found)];
"""


def poor_contrasts(browser: Browser) -> list[str]:
    """Texts whose contrast is below AA: 4.5, or 3 for large ones."""
    return browser.run(_CONTRAST)


def texts_behind_bars(browser: Browser) -> list[str]:
    """Bars that overlap a text beside them."""
    return browser.run(
        "return [...document.querySelectorAll('.lane')].filter((l) => l.checkVisibility())"
        ".flatMap((lane) => { const a = lane.getBoundingClientRect();"
        "return [...lane.parentElement.children].filter((e) => e !== lane && e.textContent)"
        ".filter((e) => { const b = e.getBoundingClientRect(); return a.left < b.right - 0.5 &&"
        "b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5 })"
        ".map((e) => e.textContent) })"
    )


def cut_names(browser: Browser, selector: str) -> list[str]:
    """Texts that do not show in full."""
    return browser.run(
        "return [...document.querySelectorAll(arguments[0])].filter((e) => e.checkVisibility() &&"
        "(e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1))"
        ".map((e) => e.textContent)",
        selector,
    )


def open_everything(browser: Browser) -> None:
    """All folds and lists of the page."""
    browser.run(
        "for (const d of document.querySelectorAll('details')) d.open = true;"
        "for (const b of document.querySelectorAll('.more')) if (b.checkVisibility()) b.click();"
        "return new Promise((r) => setTimeout(r, 100))"
    )
