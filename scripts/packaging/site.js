// The documentation as the package ships it: built in memory from this checkout, and refused where a link of it leads nowhere.

/** @returns each file of the site by its path */
export async function builtSite() {
  const { buildSite } = await import('../../site/build.js').catch((error) => {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error('the packages of the docs site are missing: npm ci --prefix site', { cause: error });
  });
  const { files, problems } = await buildSite();
  if (problems.length > 0) throw new Error(`the docs site is not built:\n${problems.join('\n')}`);
  return files;
}
