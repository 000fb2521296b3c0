// The search of the built site: only in the browser, over an index that is loaded at the first input. It uses script elements
// and not by fetch, so that it works from a disk too.
(() => {
  const root = document.body.dataset.root;
  const form = document.querySelector('.search');
  const field = form.querySelector('input');
  const found = form.querySelector('.found');
  const maxFound = 12;
  let loading;

  function load(path) {
    return new Promise((done, failed) => {
      const script = document.createElement('script');
      script.src = root + path;
      script.onload = done;
      script.onerror = failed;
      document.head.append(script);
    });
  }

  async function makeIndex() {
    await Promise.all([load('assets/minisearch.js'), load('assets/search-index.js')]);
    const index = new globalThis.MiniSearch({
      fields: ['title', 'page', 'text'],
      storeFields: ['title', 'page', 'text', 'path'],
      // Codes, keys and flags are found whole and by their parts.
      tokenize: (text) => text.split(/[^\p{L}\p{N}_-]+/u).flatMap((word) => [word, ...word.split(/[_-]+/)]),
      searchOptions: { boost: { title: 4, page: 2 }, prefix: true, fuzzy: 0.15, combineWith: 'AND' },
    });
    index.addAll(globalThis.writSearchIndex.map((section, id) => ({ id, ...section })));
    return index;
  }

  /** Where the words are, with a little before. */
  function excerpt({ text, terms }) {
    const at = text.toLowerCase().indexOf(terms[0] ?? '');
    const from = Math.max(0, at - 40);
    return `${from > 0 ? '...' : ''}${text.slice(from, from + 140)}`;
  }

  function itemOf(result) {
    const link = document.createElement('a');
    link.href = root + result.path;
    link.textContent = result.title === result.page ? result.title : `${result.page}: ${result.title}`;
    const text = document.createElement('span');
    text.textContent = excerpt(result);
    const item = document.createElement('li');
    item.append(link, text);
    return item;
  }

  async function show() {
    loading ??= makeIndex();
    const index = await loading;
    const words = field.value.trim();
    const results = words === '' ? [] : index.search(words).slice(0, maxFound);
    const list = document.createElement('ul');
    list.append(...results.map(itemOf));
    found.replaceChildren(results.length === 0 ? 'Nothing found.' : list);
    found.hidden = words === '';
  }

  form.hidden = false;
  field.addEventListener('focus', () => {
    loading ??= makeIndex();
  });
  field.addEventListener('input', show);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    found.querySelector('a')?.click();
  });
})();
