// `npm run docs:site [-- DIRECTORY]`: static pages of docs/, README and similar files, into dist/site. Needs the built program,
// because its help and error codes are pages too. Needs no network. A link or an anchor without a target fails the build, and so
// does a page without a place in the sidebar; nothing is written then. Two builds of one checkout have the same bytes.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brokenLinks } from './check-links.js';
import { layOut } from './layout.js';
import { createMarkdown } from './markdown.js';
import { copyOf, errorPageOf, linkBetween, pageOf, targetOf } from './places.js';
import { commandsPage, root, sidebar, sidebarGaps } from './sidebar.js';

/** @param bend (source, text) => the text to take; for tests. @returns { files, problems }: each file of the site by its path */
export async function buildSite(bend = (_source, text) => text) {
  const problems = [];
  const files = new Map();
  const copies = new Set();
  const waiting = sidebar().flatMap(({ entries }) => entries.map(({ source }) => source));
  const seen = new Set(waiting);
  const pages = [];
  const markdown = createMarkdown((source, href) => {
    if (/^[a-z][a-z+.-]*:/i.test(href)) return href;
    const [path = '', anchor] = href.split('#');
    const target = path === '' ? source : whatIsAt(targetOf(source, path));
    if (target === undefined) return undefined;
    const isCopy =
      target !== commandsPage && statSync(join(root, target)).isFile() && !target.endsWith('.md');
    if (isCopy) copies.add(target);
    else if (!seen.has(target)) {
      // A page that only a link leads to, as the README of a folder of tests.
      seen.add(target);
      waiting.push(target);
    }
    const link = linkBetween(placeOf(source), isCopy ? copyOf(target) : placeOf(target));
    return `${path === '' ? '' : encodeURI(link)}${anchor === undefined ? '' : `#${anchor}`}`;
  }, nameOf);
  for (let source = waiting.shift(); source !== undefined; source = waiting.shift()) {
    const text = source === commandsPage ? await commandsText() : bend(source, readSource(source));
    const page = { ...markdown(source, text, problems), source, path: placeOf(source) };
    pages.push({ ...page, section: page.path });
    if (source === 'docs/errors.md') pages.push(...(await errorPages(text, markdown, page, problems)));
  }
  const menu = menuOf(pages);
  for (const page of pages) files.set(page.path, layOut(page, menu));
  for (const source of [...copies].sort()) files.set(copyOf(source), readFileSync(join(root, source)));
  addAssets(files, pages);
  const { missing } = sidebarGaps();
  problems.push(...missing.map((page) => `${page}: has no place in site/sidebar.js`), ...brokenLinks(files));
  return { files, problems };
}

/** The title in the sidebar, or the heading of the page. */
function nameOf(source, href) {
  const target = whatIsAt(targetOf(source, href.split('#')[0]));
  if (!target?.endsWith('.md')) return undefined;
  const { label } =
    sidebar()
      .flatMap(({ entries }) => entries)
      .find((one) => one.source === target) ?? {};
  return label ?? /^# (.+)$/m.exec(readSource(target))?.[1].replaceAll('`', '');
}

/** A folder with a README is that README. */
function whatIsAt(target) {
  if (target === undefined || target === commandsPage) return target;
  if (!existsSync(join(root, target))) return undefined;
  return existsSync(join(root, target, 'README.md')) ? `${target}/README.md` : target;
}

function placeOf(source) {
  if (source !== commandsPage && !source.endsWith('.md')) return pageOf(`${source}/README.md`);
  return pageOf(source);
}

/** A folder without a README is a list of what lies in it. */
function readSource(source) {
  const path = join(root, source);
  if (!statSync(path).isDirectory()) return readFileSync(path, 'utf8');
  const name = source.split('/').at(-1);
  const items = readdirSync(path)
    .sort()
    .map((one) => `- [${one}](${name}/${one})`);
  return `# ${source}\n\n${items.join('\n')}\n`;
}

function menuOf(pages) {
  return sidebar().map((group) => ({
    ...group,
    entries: group.entries.map(({ source, label }) => {
      const page = pages.find((one) => one.source === source);
      return { path: page.path, label: label ?? page.title };
    }),
  }));
}

/** Each code has its own address, as `error[CODE]` names it; the words are those of docs/errors.md, which is made of one table. */
async function errorPages(text, markdown, all, problems) {
  const { errorCodes } = await import('../dist/src/core/error-codes.js');
  const parts = new Map(
    text
      .split(/^## /m)
      .slice(1)
      .map((part) => [part.slice(0, part.indexOf('\n')), part]),
  );
  const codes = Object.keys(errorCodes);
  const differ = [
    ...codes.filter((code) => !parts.has(code)),
    ...[...parts.keys()].filter((code) => !codes.includes(code)),
  ];
  problems.push(
    ...differ.map((code) => `docs/errors.md: ${code} is not in both page and table: npm run docs`),
  );
  all.html = all.html.replace(/<h2 id="[^"]*">([A-Z0-9_]+)<\/h2>/g, (heading, code) =>
    heading.replace(`>${code}<`, `><a href="${code}/index.html">${code}</a><`),
  );
  return [...parts].map(([code, part]) => {
    const page = markdown('docs/errors.md', `# ${part}`, problems);
    const html = `${page.html}<p><a href="../index.html">All error codes</a>. Without a network: <code>writ help ${code}</code></p>\n`;
    return { ...page, html, source: `docs/errors.md#${code}`, path: errorPageOf(code), section: all.path };
  });
}

/** The help of every command and topic, as the program prints it. */
async function commandsText() {
  const { commands } = await import('../dist/src/cli/run.js');
  const { parseCommandLine } = await import('../dist/src/cli/console/program.js');
  const { topicNames } = await import('../dist/src/cli/console/help-topics.js');
  const { writVersion: version } = await import('../dist/src/core/version.js');
  const help = async (...argv) => {
    const { text } = await parseCommandLine(argv, commands, { version, env: {}, stdout: {} });
    return `\`\`\`\`\n${text.trimEnd()}\n\`\`\`\`\n`;
  };
  const parts = ['# Commands\n', await help('--help')];
  for (const { name, summary } of commands)
    parts.push(`## writ ${name}\n`, `Summary: ${summary}.\n`, await help(...name.split(' '), '--help'));
  for (const topic of topicNames) parts.push(`## writ help ${topic}\n`, await help('help', topic));
  return parts.join('\n');
}

function addAssets(files, pages) {
  const sections = pages
    // Each code is found once, on its own page.
    .flatMap((page) =>
      page.source === 'docs/errors.md' ? { ...page, sections: page.sections.slice(0, 1) } : page,
    )
    .flatMap(({ sections, title: page, path }) =>
      sections.map(({ id, title, text }, index) => ({
        path: index === 0 ? path : `${path}#${id}`,
        page,
        title,
        text,
      })),
    );
  files.set('assets/search-index.js', `globalThis.writSearchIndex = ${JSON.stringify(sections)};\n`);
  const library = createRequire(import.meta.url).resolve('minisearch');
  const bundle = join(dirname(library), '..', 'umd', 'index.js');
  files.set('assets/minisearch.js', readFileSync(bundle, 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, ''));
  // Its licence asks to go with every copy.
  files.set('assets/minisearch-license.txt', readFileSync(join(dirname(bundle), '..', '..', 'LICENSE.txt')));
  for (const name of ['site.css', 'search.js'])
    files.set(`assets/${name}`, readFileSync(join(import.meta.dirname, 'assets', name)));
}

/** Writes all pages, and removes all other files. */
export function writeSite(files, directory) {
  rmSync(directory, { recursive: true, force: true });
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), bytes);
  }
}

async function main([directory = join(root, 'dist/site')]) {
  const { files, problems } = await buildSite();
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) return 1;
  writeSite(files, resolve(directory));
  const bytes = [...files.values()].reduce((sum, one) => sum + Buffer.byteLength(one), 0);
  console.log(
    `${files.size} files, ${(bytes / 1e6).toFixed(1)} MB, every link checked: ${resolve(directory)}`,
  );
  return 0;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) process.exitCode = await main(process.argv.slice(2));
