// Marks tables with long texts, whose rows become blocks on a phone (site.css), and copies headings to their cells.
for (const table of document.querySelectorAll(".md-typeset table:not([class])")) {
  const headings = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim())
  const cells = [...table.querySelectorAll("tbody td")]
  if (headings.length > 1 && cells.some((cell) => cell.textContent.length > 50)) {
    table.dataset.stacked = ""
    for (const cell of cells) cell.dataset.heading = headings[cell.cellIndex]
  }
}
