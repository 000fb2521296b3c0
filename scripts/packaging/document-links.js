// Links in the documents of a package: each leads to the site beside them, since most of what they name in the repository is not
// shipped. Pure: texts and paths in, texts out; what leads nowhere ends the build.
import { copyOf, linkBetween, pageOf, targetOf } from '../../site/places.js';

const link = /\]\(([^)\s#]*)(#[^)\s]*)?\)/g;

/**
 * @param text Markdown
 * @param places `source`: its path in the repository; `place`: where it will lie, below the folder with the site in `html`; `site`: each file of the
 * site by its path
 */
export function linkedToSite(text, { source, place, site }) {
  return text.replace(link, (whole, path, anchor = '') => {
    if (path === '' || /^[a-z][a-z+.-]*:/i.test(path)) return whole;
    const target = targetOf(source, path) ?? '';
    const found = [pageOf(target), pageOf(`${target}/README.md`), copyOf(target)].find((one) =>
      site.has(one),
    );
    if (found === undefined) throw new Error(`${source}: the site has nothing for ${path}`);
    return `](${encodeURI(linkBetween(place, `html/${found}`))}${anchor})`;
  });
}
