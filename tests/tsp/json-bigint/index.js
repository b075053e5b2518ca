// What tsp-typescript-client asks of json-bigint: integers that a number cannot hold become BigInt, and BigInts are written as bare integers.
// Other numbers stay numbers, however many digits they are written with.
'use strict';

const MARK = '\u0001int:';

function parse(text, reviver) {
    // Integers of 16 digits or more, outside of strings.
    const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/g,
        (token) => (token[0] !== '"' && /^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"\\u0001int:${token}"` : token));
    return JSON.parse(marked, function (key, value) {
        const plain = typeof value === 'string' && value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value;
        return reviver ? reviver.call(this, key, plain) : plain;
    });
}

function stringify(value, replacer, space) {
    const text = JSON.stringify(value, function (key, v) {
        const replaced = typeof replacer === 'function' ? replacer.call(this, key, v) : v;
        return typeof replaced === 'bigint' ? `${MARK}${replaced}` : replaced;
    }, space);
    return text === undefined ? text : text.replace(/"\\u0001int:(-?\d+)"/g, '$1');
}

module.exports = () => ({ parse, stringify });
module.exports.parse = parse;
module.exports.stringify = stringify;
