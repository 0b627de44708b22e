// Index expressions as in C: whole numbers, names, + - * / % << >> & ^ | and brackets. Exact, by BigInt.

const LEVELS = [['|'], ['^'], ['&'], ['<<', '>>'], ['+', '-'], ['*', '/', '%']];
const OPERATE = {
  '|': (a, b) => a | b, '^': (a, b) => a ^ b, '&': (a, b) => a & b, '+': (a, b) => a + b, '-': (a, b) => a - b, '*': (a, b) => a * b,
  '<<': (a, b) => a << b, '>>': (a, b) => a >> b, '/': (a, b) => a / b, '%': (a, b) => a % b,
};

function tokens(expression) {
  const found = [...expression.matchAll(/\s*(?:(0[xX][0-9a-fA-F]+|[0-9]+)|([A-Za-z_]\w*)|(<<|>>|[-+*/%&^|()])|(\S))/g)];
  return found.map(([, digits, name, sign, wrong]) => {
    if (wrong) throw new Error(`'${wrong}' is not part of an index expression`);
    return {digits, name, sign};
  });
}

// A function of {name: number} that gives a number.
function compileIndex(expression) {
  const all = tokens(expression);
  let at = 0, depth = 0;
  const sign = wanted => all[at] && all[at].sign && wanted.includes(all[at].sign) ? all[at++].sign : null;
  const one = () => {
    if (++depth > 50) throw new Error('the expression is too deep');
    const token = all[at++];
    let value;
    if (!token) throw new Error('the expression ends too early');
    if (token.digits) { const number = BigInt(token.digits); value = () => number; }
    else if (token.name) value = names => {
      if (!Object.hasOwn(names, token.name)) throw new Error(`there is no variable '${token.name}'; there are ${Object.keys(names).join(', ')}`);
      return BigInt(names[token.name]);
    };
    else if (token.sign === '-') { const inner = one(); value = names => -inner(names); }
    else if (token.sign === '(') {
      value = level(0);
      if (!sign([')'])) throw new Error("a ')' is missing");
    } else throw new Error(`'${token.sign}' has nothing before it`);
    depth--;
    return value;
  };
  const level = n => {
    if (n === LEVELS.length) return one();
    let left = level(n + 1);
    for (let op; (op = sign(LEVELS[n]));) {
      const a = left, b = level(n + 1), operate = OPERATE[op];
      left = names => {
        const x = a(names), y = b(names);
        if ((op === '/' || op === '%') && y === 0n) throw new Error('division by zero');
        if ((op === '<<' || op === '>>') && (y < 0n || y > 63n)) throw new Error('a shift by ' + y + ' bits');
        const z = operate(x, y);
        if (z > 2n ** 62n || z < -(2n ** 62n)) throw new Error('the index is out of range');
        return z;
      };
    }
    return left;
  };
  const value = level(0);
  if (at < all.length) throw new Error(`'${all[at].sign || all[at].name || all[at].digits}' was not expected`);
  return names => Number(value(names));
}
