// Markdown to HTML: anchors as GitHub makes them, links from source to source turned into links from page to page. It reads the
// repository to find the target of a link; it writes nothing. A link without a target is collected, never ignored.
import MarkdownIt from 'markdown-it';

const escaped = (text) => text.replace(/[&<>"]/g, (one) => `&#${one.charCodeAt(0)};`);

/**
 * @param resolve (source, href, kind) => the link to write, or undefined where it leads nowhere
 * @param nameOf (source, href) => what the page is called that a link leads to: a reader of the site knows no names of files
 * @returns what renders a page
 */
export function createMarkdown(resolve, nameOf = () => undefined) {
  // HTML is on only so that comments are seen, and dropped: other HTML is refused.
  const markdown = new MarkdownIt({ html: true });
  const refuse = (text, { source, problems }) => {
    if (!/^\s*<!--[\s\S]*-->\s*$/.test(text))
      problems.push(`${source}: HTML in Markdown: ${text.slice(0, 60)}`);
    return '';
  };
  const { rules } = markdown.renderer;
  rules.html_block = (tokens, index, _options, env) => refuse(tokens[index].content, env);
  rules.html_inline = (tokens, index, _options, env) => refuse(tokens[index].content, env);
  rules.table_open = () => '<div class="table" tabindex="0" role="group" aria-label="Table"><table>\n';
  rules.table_close = () => '</table></div>\n';
  rules.fence = (tokens, index) => codeBlock(tokens[index].content);
  rules.code_block = rules.fence;

  /** @returns { title, html, headings: [{ level, id, text }], sections: [{ id, title, text }] } */
  return (source, text, problems) => {
    const env = { source, problems };
    const tokens = markdown.parse(text, env);
    const headings = addAnchors(tokens);
    nameLinks(tokens, (href) => nameOf(source, href));
    followLinks(tokens, (href, kind, line) => {
      const link = resolve(source, href, kind);
      if (link === undefined) problems.push(`${source}:${line}: nothing is at ${href}`);
      return link ?? href;
    });
    const title = headings.find(({ level }) => level === 1)?.text ?? source;
    return {
      title,
      headings,
      sections: sectionsOf(tokens),
      html: markdown.renderer.render(tokens, markdown.options, env),
    };
  };
}

/** A reader with a keyboard can scroll it. */
export function codeBlock(text) {
  return `<pre tabindex="0"><code>${escaped(text)}</code></pre>\n`;
}

function plainText({ children, content }) {
  if (children === null) return content;
  return children.map((one) => (one.type === 'softbreak' ? ' ' : one.content)).join('');
}

/** As GitHub: lower case, without punctuation, a hyphen for each space, a number for the second of a name. */
export function slugOf(text, seen = new Map()) {
  const slug = text
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '')
    .replaceAll(' ', '-');
  const count = seen.get(slug) ?? 0;
  seen.set(slug, count + 1);
  return count === 0 ? slug : `${slug}-${count}`;
}

function addAnchors(tokens) {
  const seen = new Map();
  return tokens.flatMap((token, index) => {
    if (token.type !== 'heading_open') return [];
    const text = plainText(tokens[index + 1]);
    const id = slugOf(text, seen);
    token.attrSet('id', id);
    return [{ level: Number(token.tag.slice(1)), id, text }];
  });
}

function followLinks(tokens, follow) {
  for (const { children, map } of tokens) {
    for (const child of children ?? []) {
      const name = child.type === 'image' ? 'src' : 'href';
      if (child.type !== 'image' && child.type !== 'link_open') continue;
      child.attrSet(name, follow(child.attrGet(name), child.type, (map?.[0] ?? 0) + 1));
    }
  }
}

/** Where the text of a link is the file that it leads to, and nothing else. */
function nameLinks(tokens, nameOf) {
  for (const { children } of tokens) {
    for (const [index, child] of (children ?? []).entries()) {
      const [text, end] = children.slice(index + 1, index + 3);
      if (child.type !== 'link_open' || end?.type !== 'link_close' || !/^[\w./-]+\.md$/.test(text.content))
        continue;
      text.content = nameOf(child.attrGet('href')) ?? text.content;
    }
  }
}

/** What search finds: a heading and the text below it. */
function sectionsOf(tokens) {
  const sections = [];
  for (const [index, token] of tokens.entries()) {
    if (token.type === 'heading_open')
      sections.push({ id: token.attrGet('id'), title: plainText(tokens[index + 1]), texts: [] });
    else if (
      ['inline', 'fence', 'code_block'].includes(token.type) &&
      tokens[index - 1]?.type !== 'heading_open'
    )
      sections.at(-1)?.texts.push(plainText(token));
  }
  return sections.map(({ id, title, texts }) => ({
    id,
    title,
    text: texts.join(' ').replace(/\s+/g, ' ').trim(),
  }));
}
