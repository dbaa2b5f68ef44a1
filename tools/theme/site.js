// Marks tables with texts, whose rows become blocks on a phone (site.css), and copies headings to their cells.
// Tables of numbers, and small ones, stay tables.
for (const table of document.querySelectorAll(".md-typeset table:not([class])")) {
  const headings = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim())
  const cells = [...table.querySelectorAll("tbody td")]
  const numbers = cells.filter((cell) => /^[\d\s.,:%×±–-]+$/.test(cell.textContent))
  const long = cells.some((cell) => cell.textContent.length > 50)
  const wide = table.scrollWidth > table.closest("article").clientWidth - 30 && numbers.length < cells.length / 4
  if (headings.length > 1 && (long || wide)) {
    table.dataset.stacked = ""
    for (const cell of cells) cell.dataset.heading = headings[cell.cellIndex]
  }
}
