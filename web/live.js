// Under sol serve: the file is looked at every second, and the report drawn again when it has changed.
(() => {
  const stamp = () => fetch('/stamp' + location.pathname).then(answer => answer.ok ? answer.text() : null, () => null);
  let first = null;
  setInterval(async () => {
    const now = await stamp();
    if (first !== null && now !== null && now !== first) location.reload();
    if (now !== null) first = now;
  }, 1000);
})();
