// SPDX-License-Identifier: Apache-2.0
// One page: nothing is loaded from elsewhere, everything can be read without the script.
#include <fmt/format.h>

#include <algorithm>

#include "base64.h"
#include "lipscope/version.h"
#include "report/report.h"
#include "report/svg.h"

namespace lipscope::app {
namespace {

constexpr const char* kStyle = R"(
*{box-sizing:border-box}
html{color-scheme:light dark;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}
main{max-width:70rem;margin:0 auto;padding:2.2rem 1.4rem 4rem}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .2rem;font-weight:650;letter-spacing:-.01em}
h2{font-size:1.2rem;margin:2.8rem 0 .3rem;font-weight:620;border-top:1px solid var(--line);padding-top:1.3rem}
h3{font-size:.95rem;margin:0 0 .5rem;font-weight:600}
.sub,.note{color:var(--soft);margin:.1rem 0 1rem;overflow-wrap:anywhere}
.note{font-size:.88rem}
.remark{margin:1.2rem 0 0;padding:.1rem .9rem;border-left:3px solid var(--s1);max-width:60rem;overflow-wrap:anywhere}
.facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(12rem,1fr));gap:.7rem;margin:1.4rem 0 0;padding:0}
.facts div{border:1px solid var(--line);border-radius:.5rem;padding:.65rem .85rem}
.facts dt{color:var(--soft);font-size:.8rem}
.facts dd{margin:0;font-size:1.18rem;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.facts .short{white-space:nowrap}
.badge{font-size:.68rem;letter-spacing:.02em;color:var(--good);border:1px solid currentColor;border-radius:1rem;padding:.02rem .42rem;vertical-align:.12em;white-space:nowrap}
.badge.real{color:var(--s1)}.badge.estimate{color:var(--s3)}
.blocks{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(30rem,100%),1fr));gap:1.8rem 2rem;margin-top:1rem}
figure,.block{margin:0;min-width:0}
.wide{grid-column:1/-1}
svg.plot,svg.heat{width:100%;height:auto;display:block}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;font-size:.85rem;color:var(--soft);margin:.1rem 0 0;padding:0;list-style:none}
.key i{display:inline-block;width:.8rem;height:.8rem;border-radius:.2rem;margin-right:.4rem;vertical-align:-.08rem}
.scroll{overflow-x:auto;max-height:34rem;overflow-y:auto;border:1px solid var(--line);border-radius:.5rem}
table{border-collapse:collapse;width:100%;font-size:.88rem;font-variant-numeric:tabular-nums}
th,td{padding:.34rem .8rem;text-align:left;white-space:nowrap}
td.n,th.n{text-align:right}
td.t{white-space:normal;min-width:15rem}
thead th{position:sticky;top:0;background:var(--paper);border-bottom:1px solid var(--line);font-weight:600;color:var(--soft)}
tbody tr+tr td{border-top:1px solid var(--faint)}
tbody tr:hover td,tr:target td,tr.here td{background:var(--faint)}
th button{all:unset;cursor:pointer;font:inherit;color:inherit}
th button:focus-visible,a:focus-visible{outline:2px solid var(--s0);outline-offset:2px}
th[aria-sort=ascending] button::after{content:" ↑"}th[aria-sort=descending] button::after{content:" ↓"}
.gallery{display:grid;grid-template-columns:repeat(auto-fill,minmax(7.2rem,1fr));gap:1rem}
.gallery a{color:inherit;text-decoration:none;font-size:.78rem;line-height:1.35;color:var(--soft);display:block}
.gallery img{width:100%;image-rendering:pixelated;border-radius:.35rem;background:#000;display:block;margin-bottom:.3rem}
footer{margin-top:3rem;color:var(--soft);font-size:.82rem;border-top:1px solid var(--line);padding-top:1rem}
:root{--good:#2c7a4b;--faint:#f1f3f6}
@media(prefers-color-scheme:dark){:root{--paper:#14171c;--ink:#e6e9ee;--soft:#9aa3b0;--line:#2d333c;--faint:#1d2229;--s0:#6aa5e8;--s1:#e8935f;--s2:#7cc08d;--s3:#b791d6;--heat:#43658c;--good:#79c795}}
@media(max-width:40rem){main{padding:1.4rem 1rem 3rem}h1{font-size:1.4rem}.facts{grid-template-columns:repeat(2,1fr)}th,td{padding:.34rem .55rem}table{font-size:.8rem}td:not(.n){white-space:normal;overflow-wrap:break-word;min-width:6.2rem}td.t{white-space:nowrap}td.p{overflow-wrap:anywhere;min-width:8rem}svg.plot text{font-size:15px}.gallery{grid-template-columns:repeat(auto-fill,minmax(6rem,1fr));gap:.7rem}}
@media print{:root{--paper:#fff;--ink:#000;--soft:#444;--line:#ccc;--faint:#f5f5f5;--s0:#2f6db5;--s1:#c2622d;--s2:#4b8f5c;--s3:#8a5fa8;--heat:#6491c8;--good:#2c7a4b}thead th{position:static}table{font-size:.74rem}th,td,td.t{white-space:normal;min-width:0;padding:.2rem .4rem}td:not(.n){overflow-wrap:anywhere}td.n{white-space:nowrap}tr{break-inside:avoid}.scroll{max-height:none;overflow:visible}.block:not(.wide),figure{break-inside:avoid}}
)";

constexpr const char* kScript = R"(
document.querySelectorAll('table.sort').forEach(function(t){
t.querySelectorAll('th').forEach(function(h,i){
var b=document.createElement('button');b.type='button';b.textContent=h.textContent;h.textContent='';h.appendChild(b);
b.addEventListener('click',function(){
var up=h.getAttribute('aria-sort')!=='ascending';
t.querySelectorAll('th').forEach(function(o){o.removeAttribute('aria-sort')});
h.setAttribute('aria-sort',up?'ascending':'descending');
var k=function(r){var c=r.cells[i],v=c.getAttribute('data-v');return v===null?c.textContent:parseFloat(v)};
var rows=Array.prototype.slice.call(t.tBodies[0].rows);
rows.sort(function(a,b){var x=k(a),y=k(b);
var o=typeof x==='number'&&typeof y==='number'?x-y:typeof x==='number'?-1:typeof y==='number'?1:x.localeCompare(y);return up?o:-o});
rows.forEach(function(r){t.tBodies[0].appendChild(r)})})})});
document.querySelectorAll('.gallery a').forEach(function(a){a.addEventListener('click',function(){
document.querySelectorAll('tr.here').forEach(function(r){r.classList.remove('here')});
var r=document.getElementById(a.getAttribute('href').slice(1));if(r)r.classList.add('here')})});
)";

std::string badge_of(const std::string& badge) {
  if (badge.empty()) return "";
  return fmt::format(R"(<span class="badge {}">{}</span>)", escaped(badge), escaped(badge));
}

std::string html_of(const Table& table) {
  const bool sortable = table.rows.size() > 1;
  std::string text =
      fmt::format(R"(<div class="block{}"><h3>{}</h3><div class="scroll"><table{}><thead><tr>)",
                  table.columns.size() > 4 || table.rows.size() > 30 ? " wide" : "",
                  escaped(table.title), sortable ? R"( class="sort")" : "");
  std::vector<bool> numeric(table.columns.size(), !table.rows.empty());
  for (const auto& row : table.rows) {
    for (std::size_t c = 0; c < row.size() && c < numeric.size(); ++c)
      numeric[c] = numeric[c] && (row[c].sort || row[c].text == "–");
  }
  // Sentences may be broken between words, long names anywhere.
  const auto kind_of = [&](std::size_t c) {
    if (numeric[c]) return "n";
    std::size_t longest = 0;
    bool spaces = false;
    for (const auto& row : table.rows) {
      if (c >= row.size()) continue;
      longest = std::max(longest, row[c].text.size());
      spaces = spaces || row[c].text.find(' ') != std::string::npos;
    }
    return longest > 40 && spaces ? "t" : longest > 14 && !spaces ? "p" : "";
  };
  std::vector<std::string> kinds;
  for (std::size_t c = 0; c < table.columns.size(); ++c) kinds.emplace_back(kind_of(c));
  // One badge in the heading where all rows have the same.
  std::vector<std::string> common(table.columns.size());
  for (std::size_t c = 0; c < common.size() && table.rows.size() > 1; ++c) {
    for (const auto& row : table.rows) {
      if (!row[c].badge.empty()) common[c] = row[c].badge;
    }
    for (const auto& row : table.rows) {
      if (row[c].badge != common[c] && row[c].text != "–") common[c].clear();
    }
  }
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string heading = table.columns[c] + (common[c].empty() ? "" : ", " + common[c]);
    text += fmt::format(R"(<th scope="col"{}>{}</th>)", numeric[c] ? R"( class="n")" : "",
                        escaped(heading));
  }
  text += "</tr></thead><tbody>";
  for (const auto& row : table.rows) {
    text += table.id.empty() ? "<tr>"
                             : fmt::format(R"(<tr id="{}-{}">)", table.id, escaped(row[0].text));
    for (std::size_t c = 0; c < row.size(); ++c) {
      const Cell& cell = row[c];
      text += "<td";
      if (!kinds[c].empty()) text += fmt::format(R"( class="{}")", kinds[c]);
      if (cell.sort) text += fmt::format(R"( data-v="{}")", *cell.sort);
      const std::string badge = common[c].empty() ? badge_of(cell.badge) : "";
      text += ">" + escaped(cell.text) + (badge.empty() ? "" : "&nbsp;" + badge) + "</td>";
    }
    text += "</tr>\n";
  }
  text += "</tbody></table></div>";
  if (!table.note.empty()) text += fmt::format(R"(<p class="note">{}</p>)", escaped(table.note));
  return text + "</div>";
}

std::string html_of(const Plot& plot) {
  std::string text = fmt::format("<figure><h3>{}</h3>{}", escaped(plot.title), draw(plot));
  if (has_key(plot)) {
    text += R"(<ul class="key">)";
    for (std::size_t k = 0; k < plot.series.size(); ++k) {
      text += fmt::format(R"x(<li><i style="background:var(--s{})"></i>{}</li>)x",
                          colour_of(plot, k), escaped(plot.series[k].name));
    }
    text += "</ul>";
  }
  if (!plot.note.empty())
    text += fmt::format(R"(<figcaption class="note">{}</figcaption>)", escaped(plot.note));
  return text + "</figure>";
}

std::string html_of(const HeatMap& map) {
  return fmt::format("<figure><h3>{}</h3>{}</figure>", escaped(map.title), draw(map));
}

std::string html_of(const Gallery& gallery) {
  std::string text = fmt::format(R"(<div class="block wide"><h3>{}</h3><div class="gallery">)",
                                 escaped(gallery.title));
  for (const Picture& picture : gallery.pictures) {
    text += fmt::format(R"(<a href="#{}"><img alt="{}" src="data:image/png;base64,{}">{}</a>)",
                        picture.target, escaped(picture.caption), to_base64(picture.png),
                        escaped(picture.caption));
  }
  return text + "</div></div>";
}

}  // namespace

std::string to_html(const Report& report) {
  std::string text = fmt::format(
      R"(<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>{}</title><link rel="icon" href="data:,"><style>{}{}</style></head><body><main><header><h1>{}</h1><p class="sub">{}</p><dl class="facts">)",
      escaped(report.title), svg_style(), kStyle, escaped(report.title), escaped(report.subtitle));
  for (const Fact& fact : report.facts) {
    text += fmt::format("<div><dt>{}</dt><dd><span{}>{}</span> {}</dd></div>", escaped(fact.label),
                        fact.value.size() < 16 ? R"( class="short")" : "", escaped(fact.value),
                        badge_of(fact.badge));
  }
  text += "</dl>";
  if (!report.note.empty())
    text += fmt::format(R"(<p class="remark">{}</p>)", escaped(report.note));
  text += "</header>";
  for (const Section& section : report.sections) {
    text += fmt::format("<section><h2>{}</h2>", escaped(section.title));
    if (!section.note.empty())
      text += fmt::format(R"(<p class="note">{}</p>)", escaped(section.note));
    text += R"(<div class="blocks">)";
    for (const Block& block : section.blocks)
      text += std::visit([](const auto& b) { return html_of(b); }, block);
    text += "</div></section>";
  }
  return text +
         fmt::format(
             "<footer>Lipscope {}. <b>Proved</b>: holds for the real-valued function of the "
             "stored weights, all rounding included. <b>Real</b>: sound up to rounding. "
             "<b>Estimate</b>: statistical.</footer></main><script>{}</script></body></html>\n",
             version(), kScript);
}

}  // namespace lipscope::app
